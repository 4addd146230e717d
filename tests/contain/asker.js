// SPDX-License-Identifier: Apache-2.0
// Runs inside: node asker.js VERSION FILE. Makes each request of FILE ([host, method, path, head, body] as JSON lines) through the
// proxy, over HTTP/1.1 or HTTP/2, and prints what came, one JSON line for each: {status, text}. The bytes are written by hand where
// a library would mend them.
const net = require('net'), tls = require('tls'), http2 = require('http2'), fs = require('fs');
const [version, file] = process.argv.slice(2);
const asks = fs.readFileSync(file, 'utf8').trim().split('\n').map(JSON.parse);
const idle = Number(process.env.IDLE || 4000);
const got = new Array(asks.length).fill(null);

function tunnel(host, alpn) {
  return new Promise((yes, no) => {
    const s = net.connect(3128, '127.0.0.1', () => s.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`));
    s.once('error', no);
    s.once('data', d => {
      if (!d.toString('latin1').includes(' 200 ')) return no(new Error(d.toString('latin1')));
      const t = tls.connect({socket: s, servername: host, ALPNProtocols: alpn}, () => yes(t));
      t.once('error', no);
    });
  });
}

function ask1([host, method, path, head, body]) {
  return new Promise(done => {
    let text = '';
    const end = () => done({status: Number((text.match(/^HTTP\/1.1 (\d+)/) || [0, 0])[1]), text});
    tunnel(host, ['http/1.1']).then(s => {
      const lines = Object.entries(head || {}).map(([k, v]) => `${k}: ${v}\r\n`).join('');
      const fields = head && head.Upgrade ? '' : 'Connection: close\r\n';
      s.on('data', d => { text += d.toString('latin1'); });
      s.on('error', end);
      s.on('close', end);
      s.setTimeout(idle, () => s.destroy());
      s.write(Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${fields}${lines}` +
        (body ? `Content-Length: ${body.length}\r\n` : '') + '\r\n' + (body || ''), 'latin1'));
    }, e => { text = '[' + e.message + ']'; end(); });
  });
}

const sessions = {};
function session(host) {
  if (!sessions[host] || sessions[host].closed || sessions[host].destroyed) {
    const c = http2.connect(`https://${host}`, {createConnection: () => sessions[host + ' socket']});
    c.on('error', () => {});
    sessions[host] = c;
  }
  return sessions[host];
}

function ask2([host, method, path, head, body]) {
  return new Promise(done => {
    let text = '', status = 0;
    const small = Object.fromEntries(Object.entries(head || {}).map(([k, v]) => [k.toLowerCase(), v]));
    const end = () => done({status, text});
    let s;
    try {
      s = session(host).request({':method': method, ':path': path, ':authority': host, ...small}, {endStream: !body});
    } catch (e) { text = '[' + e.message + ']'; return end(); }
    const heads = h => { text += JSON.stringify(h) + '\n'; };
    s.setEncoding('latin1');
    s.on('response', h => { status = h[':status']; heads(h); });
    s.on('headers', heads);
    s.on('trailers', heads);
    s.on('data', d => { text += d; });
    s.on('error', () => {});
    s.on('close', end);
    s.setTimeout(idle, () => s.close());
    if (body) s.end(Buffer.from(body, 'latin1'));
  });
}

async function lane(next) {
  for (let i; (i = next()) < asks.length;)
    got[i] = await (version === '2' ? ask2 : ask1)(asks[i]);
}

(async () => {
  if (version === '2')
    for (const host of new Set(asks.map(a => a[0])))
      sessions[host + ' socket'] = await tunnel(host, ['h2']);
  let n = 0;
  const next = () => n++;
  await Promise.all(Array.from({length: Number(process.env.LANES || 12)}, () => lane(next)));
  process.stdout.write(got.map(g => JSON.stringify(g) + '\n').join(''), () => process.exit(0));
})().catch(e => { console.error(e); process.exit(1); });
