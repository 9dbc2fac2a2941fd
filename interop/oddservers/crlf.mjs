// A server that ends its lines as Windows does.
import { legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (reply) process.stdout.write(JSON.stringify(reply) + '\r\n');
});
