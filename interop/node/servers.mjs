// The checks that each server under test is known to fail. All other checks must pass.

const notInSuite = [
    'echo', 'echo unicode', 'echo 1 MiB', 'echo 50 at once', 'add', 'invalid arguments', 'no answer after a cancel',
    'completion values', 'missing prompt argument', 'elicitation schema'
];

// The Go servers of this module offer only the part of the contract that needs little code on their SDKs.
const notInAnyPeer = [
    'schema kept', 'image', 'audio', 'embedded resource', 'mixed content', 'prompt with a resource', 'prompt with an image',
    'form defaults', 'form enums', 'prompt list changed'
];
const notInPeers = {
    v1: [
        ...notInAnyPeer, 'logging', 'defaults filled by the client', 'reconnection tool',
        'input required in the legacy era', 'prompt input in the legacy era'
    ],
    v2: [
        ...notInAnyPeer, 'input required', 'prompt input', 'no log without a level', 'log at a level', 'tool list changed',
        'input required without retries', 'input for another question', 'several questions at once', 'state changes by round',
        'tampered state', 'missing capability', 'asks only what is declared'
    ]
};

const notInMcpgo = ['no answer after a cancel', 'missing prompt argument', 'end of a watch'];

/** without names the checks that are left out, by client: v1 for client-v1.mjs, v2 for client-v2.mjs. */
export const servers = {
    /** `dowel serve everything`: the whole contract. */
    dowel: { checks: 'contract', without: {} },

    /** The same behind `dowel up`, which puts the name of the server before each question. */
    'dowel up': {
        checks: 'contract',
        without: {
            v1: ['elicitation', 'input required in the legacy era'],
            v2: ['elicitation', 'input required', 'input required without retries']
        }
    },

    /** The official Go SDK's conformance server. It offers only what the official suite checks, so neither echo nor add. */
    'gosdk-everything': {
        checks: 'contract',
        without: {
            v1: [...notInSuite, 'form enums', 'input required in the legacy era'],
            v2: [
                ...notInSuite, 'structured content',
                // It asks live in the legacy era only, and requires a capability that the call does not need.
                'sampling', 'sampling refused', 'elicitation', 'elicitation declined', 'elicitation cancelled',
                'form defaults', 'form enums', 'missing capability'
            ]
        }
    },

    /** gosdk-server of this module. */
    gosdk: {
        checks: 'contract',
        // The SDK answers cancelled calls.
        without: { v1: [...notInPeers.v1, 'no answer after a cancel'], v2: [...notInPeers.v2, 'no answer after a cancel'] }
    },

    /** mcpgo-server of this module. */
    mcpgo: {
        checks: 'contract',
        // On stdio the SDK answers cancelled calls, does not check prompt arguments, and sends updates without a subscription.
        without: {
            v1: [...notInPeers.v1, ...notInMcpgo], v2: [...notInPeers.v2, ...notInMcpgo, 'unknown resource named']
        }
    },

    /** The reference server from npm. Its tools have other names, so it has other checks. */
    everything: { checks: 'reference', without: {} }
};
