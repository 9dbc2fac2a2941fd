// What each server under test is expected not to offer. Everything that is not named here must pass.

const notInSuite = [
    'echo', 'echo unicode', 'echo 1 MiB', 'echo 50 at once', 'add', 'invalid arguments', 'no answer after a cancel',
    'completion values', 'missing prompt argument', 'elicitation schema'
];

// The Go peers of this module offer the part of the contract that one page of code on their SDK gives.
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
        ...notInAnyPeer, 'input required', 'prompt input', 'no log unasked', 'log asked for', 'tool list changed',
        'input required by hand', 'input that does not answer', 'several questions at once', 'state changes by round',
        'tampered state', 'missing capability', 'asks only what is declared'
    ]
};

const notInMcpgo = ['no answer after a cancel', 'missing prompt argument', 'end of a watch'];

/** `without` names checks by client: v1 for client-v1.mjs, v2 for client-v2.mjs. */
export const servers = {
    /** `dowel serve everything`: the whole contract. */
    dowel: { checks: 'contract', without: {} },

    /** The official Go SDK's conformance server: no echo and add, nothing that the official suite does not look at. */
    'gosdk-everything': {
        checks: 'contract',
        without: {
            v1: [...notInSuite, 'form enums', 'input required in the legacy era'],
            v2: [
                ...notInSuite, 'structured content',
                // It asks live in the legacy era only, and names one capability too many.
                'sampling', 'sampling refused', 'elicitation', 'elicitation declined', 'elicitation cancelled',
                'form defaults', 'form enums', 'missing capability'
            ]
        }
    },

    /** gosdk-server of this module. */
    gosdk: {
        checks: 'contract',
        // The SDK answers what was cancelled.
        without: { v1: [...notInPeers.v1, 'no answer after a cancel'], v2: [...notInPeers.v2, 'no answer after a cancel'] }
    },

    /** mcpgo-server of this module. */
    mcpgo: {
        checks: 'contract',
        // On stdio the SDK answers what was cancelled, checks no prompt arguments, and tells of updates unasked.
        without: {
            v1: [...notInPeers.v1, ...notInMcpgo], v2: [...notInPeers.v2, ...notInMcpgo, 'unknown resource named']
        }
    },

    /** The reference server from npm; other names, so other checks. */
    everything: { checks: 'reference', without: {} }
};
