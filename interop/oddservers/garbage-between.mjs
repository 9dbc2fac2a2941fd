// A server that prints lines that are not messages before and after each message.
import { answer, legacy, serve } from './server.mjs';

const garbage = [
    'console.log left in production\n', '\n', '   \n', '{"jsonrpc":"2.0","id":\n', '{}\n', '[]\n', 'null\n', '{"jsonrpc":"2.0"}\n',
    '{"jsonrpc":"2.0","id":999999,"result":{}}\n', '\u0000\u0001\n'
].map(text => Buffer.from(text));
garbage.push(Buffer.from([0xff, 0xfe, 0xc0, 0x0a])); // invalid UTF-8

function printGarbage() {
    for (const line of garbage) process.stdout.write(line);
}

serve(message => {
    printGarbage();
    answer(legacy(message));
    printGarbage();
});
