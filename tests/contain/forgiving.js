// SPDX-License-Identifier: Apache-2.0
// A server that understands too much, over HTTP/1.1 and HTTP/2: node forgiving.js DIR ADDRESS PORT TOKEN ENDPOINT...
//
// What a path means is decided after decoding it twice and folding its letters, without its dots, blanks, empty parts, parameters and capitals; where that
// is an ENDPOINT, the answer is TOKEN, by whatever method. A field that names another method, path or host (OTHERWISE) is believed, with '_' for '-'.
// Elsewhere the client says what it wants in the field x-play, as JSON:
// {status, head, body, pieces, cut, early, trailers, type}. In its texts {T} is TOKEN, {R} another, {S} the newest and {O} the oldest value
// that came in x-api-key, {B} and {P} the newest and oldest Authorization; {TJ}, {TU}, {SJ}, {SU} are TOKEN and the newest value with the escapes of JSON and of
// an address. The answer is in UTF-16 where `wide` says so or Accept-Charset asks for it. Every request is a line in DIR/asked.
const http2 = require('http2'), fs = require('fs'), crypto = require('crypto'), zlib = require('zlib');
const [dir, address, port, TOKEN, ...ENDPOINTS] = process.argv.slice(2);
const log = fs.openSync(`${dir}/asked`, 'a');
const keys = [], auths = [];
let open = [];

function decode(s) {
  return s.replace(/%([0-9a-fA-F]{2})/g, (_, x) => String.fromCharCode(parseInt(x, 16)));
}

function forgive(path) {
  const parts = [];
  let plain = decode(decode(path.replace(/^https?:\/\/[^/]*/i, '').split(/[?#]/)[0]));
  plain = plain.replace(/[\xc0\xc1]([\x80-\xbf])/g, (two, x) => String.fromCharCode((two.charCodeAt(0) & 1) << 6 | x.charCodeAt(0) & 63));
  plain = Buffer.from(plain, 'latin1').toString('utf8').normalize('NFKC');
  for (const part of plain.replace(/\\/g, '/').split('/')) {
    let p = part.split(';')[0].toLowerCase();
    if (p !== '..' && p !== '.') p = p.replace(/^ +|[. ]+$/g, '');
    if (p === '..') parts.pop();
    else if (p !== '' && p !== '.') parts.push(p);
  }
  return '/' + parts.join('/');
}

const OTHERWISE = ['x-original-url', 'x-rewrite-url', 'x-forwarded-uri', 'x-original-uri', 'x-http-method-override', 'x-http-method', 'x-method-override',
  'x-forwarded-host', 'forwarded', 'x-host', 'x-original-host'];

function said(head, names) {
  for (const [k, v] of Object.entries(head))
    if (names.includes(k.replaceAll('_', '-'))) return v;
}

function in_json(s) {
  return s.replaceAll('/', '\\/').replace(/[a-z]/, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0')).replaceAll('-', '\\u002d');
}

function in_address(s) {
  return encodeURIComponent(s).replaceAll('-', '%2D').replaceAll('.', '%2e').replaceAll('_', '%5F');
}

function fill(text) {
  const value = keys[keys.length - 1] || '-';
  text = text.replaceAll('{TJ}', in_json(TOKEN)).replaceAll('{TU}', in_address(TOKEN)).replaceAll('{SJ}', value.replaceAll('/', '\\/')).replaceAll('{SU}', encodeURIComponent(value));
  return text.replaceAll('{T}', TOKEN).replaceAll('{R}', TOKEN.slice(0, 14) + 'refresh' + TOKEN.slice(14, -1)).replaceAll('{S}', keys[keys.length - 1] || '-').replaceAll('{O}', keys[0] || '-')
    .replaceAll('{B}', auths[auths.length - 1] || '-').replaceAll('{P}', auths[0] || '-');
}

function note(version, method, path, head, body) {
  const value = head['x-api-key'], auth = head.authorization;
  if (value && keys[keys.length - 1] !== value) keys.push(value);
  if (auth && auths[auths.length - 1] !== auth) auths.push(auth);
  const other = said(head, OTHERWISE);
  const is_endpoint = ENDPOINTS.includes(forgive(said(head, OTHERWISE.slice(0, 4)) || path)) || (other !== undefined && ENDPOINTS.includes(forgive(path)));
  fs.writeSync(log, JSON.stringify({version, method, path, head, body: body.toString('latin1'), is_endpoint, other}) + '\n');
  return is_endpoint;
}

function wish(head, is_endpoint) {
  const q = head['x-play'] ? JSON.parse(head['x-play']) : {};
  if (q.body === undefined)
    q.body = is_endpoint ? '{"access_token":"{T}","token_type":"bearer","refresh_token":"{R}","expires_in":3600}' : 'fine';
  q.body = Buffer.from(fill(q.body), 'latin1');
  if (q.wide || /utf-16/i.test(head['accept-charset'] || '')) {
    q.body = Buffer.from(q.body.toString('latin1'), 'utf16le');
    q.type = q.type || (q.wide === 'silent' ? 'text/plain' : 'text/plain; charset=utf-16le');
  }
  if (q.coding === 'gzip') q.body = zlib.gzipSync(q.body);
  q.type = q.type || 'text/plain';
  q.head = JSON.parse(fill(JSON.stringify(q.head || {})));
  return q;
}

const server = http2.createSecureServer({allowHTTP1: true, cert: fs.readFileSync(`${dir}/server.pem`), key: fs.readFileSync(`${dir}/server.key`),
  settings: {maxConcurrentStreams: 200}});
for (const e of ['error', 'sessionError', 'tlsClientError', 'clientError']) server.on(e, (err, s) => { if (s && s.destroy) s.destroy(); });

function later(q, write, end) {
  let at = 0;
  const most = q.cut === undefined ? q.body.length : q.cut;
  (function more() {
    if (at >= most) return end(q.cut !== undefined);
    write(q.body.subarray(at, Math.min(most, at + (q.pieces || 1 << 20))));
    at += q.pieces || 1 << 20;
    setTimeout(more, q.pieces ? 2 : 0);
  })();
}

server.on('stream', (s, h) => {
  const parts = [];
  s.on('error', () => {});
  s.on('data', d => parts.push(d));
  s.on('end', () => {
    const q = wish(h, note('2', h[':method'], h[':path'], h, Buffer.concat(parts)));
    if (q.early) s.additionalHeaders({':status': 103, ...JSON.parse(fill(JSON.stringify(q.early)))});
    const head = {':status': q.status || 200, 'content-type': q.type, ...q.head};
    if (q.trailers) s.once('wantTrailers', () => { try { s.sendTrailers(JSON.parse(fill(JSON.stringify(q.trailers)))); } catch (e) { s.close(); } });
    s.respond(head, {waitForTrailers: !!q.trailers});
    if (q.hold) { open.push(t => { s.write(t); s.end(); }); s.write('begun\n'); return; }
    if (q.tell) { open.forEach(f => f(Buffer.from(fill(q.tell), 'latin1'))); open = []; }
    later(q, d => s.write(d), is_cut => is_cut ? s.close(http2.constants.NGHTTP2_INTERNAL_ERROR) : s.end());
  });
});

server.on('request', (req, res) => {
  if (req.httpVersionMajor === 2) return;
  const parts = [];
  req.on('data', d => parts.push(d));
  req.on('end', () => {
    const q = wish(req.headers, note('1', req.method, req.url, req.headers, Buffer.concat(parts)));
    if (q.early) res.writeEarlyHints(JSON.parse(fill(JSON.stringify(q.early))));
    res.writeHead(q.status || 200, {'content-type': q.type, ...(q.cut !== undefined ? {'content-length': q.body.length} : {}),
      ...(q.trailers ? {trailer: Object.keys(q.trailers).join(', ')} : {}), ...q.head});
    if (q.hold) { open.push(t => { res.write(t); res.end(); }); res.write('begun\n'); return; }
    if (q.tell) { open.forEach(f => f(Buffer.from(fill(q.tell), 'latin1'))); open = []; }
    if (q.trailers) res.addTrailers(JSON.parse(fill(JSON.stringify(q.trailers))));
    later(q, d => res.write(d), is_cut => is_cut ? setTimeout(() => req.socket.destroy(), 50) : res.end());
  });
});

// A WebSocket: the text in frames of q.pieces bytes, the last one final unless q.cut.
server.on('upgrade', (req, socket) => {
  note('1', req.method, req.url, req.headers, Buffer.alloc(0));
  const q = wish(req.headers, false);
  const accept = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.on('error', () => {});
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + accept + '\r\n' +
    Object.entries(q.head).map(([k, v]) => `${k}: ${v}\r\n`).join('') + '\r\n');
  const n = q.pieces || q.body.length;
  for (let at = 0; at < q.body.length; at += n) {
    const d = q.body.subarray(at, at + n), is_last = at + n >= q.body.length;
    socket.write(Buffer.concat([Buffer.from([(at ? 0 : 1) | (is_last && q.cut === undefined ? 0x80 : 0), d.length]), d]));
    const ping = Buffer.from(typeof q.ping === 'string' ? q.ping : 'p', 'latin1');
    if (q.ping) socket.write(Buffer.concat([Buffer.from([0x89, ping.length]), ping]));
  }
  setTimeout(() => socket.destroy(), 300);
});

server.listen(Number(port), address, () => console.log('up'));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
