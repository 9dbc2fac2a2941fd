// A server that ends in the middle of the line with the call's answer.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (message.method !== 'tools/call') return answer(reply);
    const line = JSON.stringify(reply);
    process.stdout.write(line.slice(0, line.length / 2), () => process.exit(9));
});
