// A server that writes Latin-1 where the protocol has UTF-8.
import { legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (reply) process.stdout.write(Buffer.from(JSON.stringify(reply) + '\n', 'latin1'));
});
