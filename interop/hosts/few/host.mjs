// AI SDK and LangChain as clients of dowel up.

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as Stdio } from '@ai-sdk/mcp/mcp-stdio';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { useHost } from '../use.mjs';

await useHost({
    async 'ai-sdk'(target, tool, message) {
        const transport = target.url === undefined
            ? new Stdio({ command: target.command, args: target.args, env: target.env })
            : { type: 'http', url: target.url, headers: target.headers };
        const client = await createMCPClient({ transport });
        const tools = await client.tools();
        return {
            names: Object.keys(tools),
            call: () => tools[tool].execute({ message }, { toolCallId: '1', messages: [] }),
            close: () => client.close(),
        };
    },
    async langchain(target, tool, message) {
        const server = target.url === undefined
            ? { transport: 'stdio', command: target.command, args: target.args, env: target.env }
            : { transport: 'http', url: target.url, headers: target.headers };
        const client = new MultiServerMCPClient({ mcpServers: { dowel: server } });
        const tools = await client.getTools();
        return {
            names: tools.map(each => each.name),
            call: () => tools.find(each => each.name === tool).invoke({ message }),
            close: () => client.close(),
        };
    },
});
