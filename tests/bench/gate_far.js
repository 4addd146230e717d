// SPDX-License-Identifier: Apache-2.0
// The far side of gate.py: node gate_far.js DIR ADDRESS. HTTPS on port 443 (HTTP/1.1 and HTTP/2) and HTTP on port 80;
// /small is a short answer, /big/N one of N MiB, both of text that no compression and no mask changes.
const http = require('http'), http2 = require('http2'), fs = require('fs');
const [dir, address] = process.argv.slice(2);
const line = 'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":" sk and so on, a model writes"}}\n\n';
const block = Buffer.from(line.repeat(Math.ceil(262144 / line.length))).subarray(0, 262144);

function answer(req, res) {
  const big = /^\/big\/(\d+)/.exec(req.url);
  if (!big) {
    res.writeHead(200, {'content-type': 'application/json', 'content-length': 15, 'x-request-id': 'req_0123456789', 'cache-control': 'no-cache'});
    return res.end('{"answer": 42}\n');
  }
  let left = Number(big[1]) * 4;
  res.writeHead(200, {'content-type': 'text/event-stream'});
  (function more() {
    while (left-- > 0)
      if (!res.write(block)) return res.once('drain', more);
    res.end();
  })();
}

const tls = http2.createSecureServer({allowHTTP1: true, cert: fs.readFileSync(`${dir}/server.pem`), key: fs.readFileSync(`${dir}/server.key`)}, answer);
for (const e of ['error', 'sessionError', 'clientError']) tls.on(e, () => {});
tls.listen(443, address, () => http.createServer(answer).listen(80, address, () => console.log('up')));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
