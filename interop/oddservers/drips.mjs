// A server that writes its answers in pieces of seven bytes, so that characters and messages are split.
import { legacy, serve } from './server.mjs';

let queue = Buffer.alloc(0);
setInterval(() => {
    process.stdout.write(queue.subarray(0, 7));
    queue = queue.subarray(7);
}, 1);
serve(message => {
    const reply = legacy(message);
    if (reply) queue = Buffer.concat([queue, Buffer.from(JSON.stringify(reply) + '\n')]);
});
