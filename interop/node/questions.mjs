// The questions that the everything server asks its client, with the answers and the expected results.
// In the legacy era a question is a live request. In the modern era the SDK answers an input_required result.

import { must, same, textOf } from './report.mjs';

export const roots = [{ uri: 'file:///srv/interop-root', name: 'interop root' }];

/** Returns the answers of a client that accepts every question. A check can replace one of them; see asked. */
export function acceptingAnswers() {
    return {
        elicit: params => ({ action: 'accept', content: fill(params.requestedSchema) }),
        sample: () => ({
            role: 'assistant', model: 'interop-model', stopReason: 'endTurn', content: { type: 'text', text: 'Paris' }
        }),
        roots: () => ({ roots })
    };
}

/** Returns a value for each property of a form. */
function fill(schema) {
    return Object.fromEntries(Object.entries(schema.properties).map(([name, field]) => [name, valueFor(name, field)]));
}

function valueFor(name, field) {
    const choices = field.enum ?? field.oneOf?.map(option => option.const);
    if (choices) return choices[0];
    switch (field.type) {
        case 'boolean': return true;
        case 'integer': return 7;
        case 'number': return 1.5;
        case 'array': return [field.items.enum?.[0] ?? field.items.anyOf[0].const];
        default: return field.format === 'email' ? 'ada@example.com' : `a ${name}`;
    }
}

/** Runs body with another answer to one kind of question. Returns the params of the questions, and the result of body. */
export async function asked(peer, kind, answer, body) {
    const usual = peer.answers[kind];
    const questions = [];
    peer.answers[kind] = params => {
        questions.push(params);
        return answer(params);
    };
    try {
        const result = await body();
        must(questions.length > 0, `the client was not asked (${kind}); result: ${String(JSON.stringify(result)).slice(0, 300)}`);
        return [questions, result];
    } finally {
        peer.answers[kind] = usual;
    }
}

/** Checks the tools that ask during a call. */
export async function checkQuestions(report, peer) {
    await checkSampling(report, peer);
    await report.check('roots', async () => {
        const [, result] = await asked(peer, 'roots', peer.answers.roots,
            () => peer.call('test_input_required_result_list_roots', {}));
        must(/interop.root/.test(textOf(result)), `text: ${textOf(result)}`);
    });
    await checkElicitation(report, peer);
    await checkForms(report, peer);
}

async function checkSampling(report, peer) {
    await report.check('sampling', async () => {
        const [[question], result] = await asked(peer, 'sample', peer.answers.sample,
            () => peer.call('test_sampling', { prompt: 'Name a city.' }));
        const [message] = question.messages;
        const content = Array.isArray(message.content) ? message.content[0] : message.content;
        same([message.role, content.text], ['user', 'Name a city.'], 'message');
        same(question.maxTokens, 100, 'maxTokens');
        same(textOf(result), 'LLM response: Paris', 'text');
    });
    await report.check('sampling refused', async () => {
        const no = () => { throw new Error('the user said no'); };
        let outcome;
        await asked(peer, 'sample', no, async () => {
            outcome = await peer.call('test_sampling', { prompt: 'x' }).then(textAndError, error => `error ${error.message}`);
            return outcome;
        });
        must(/error/i.test(outcome), `got ${outcome}, want an error`);
        return outcome;
    });
}

function textAndError(result) {
    return `${result.isError ? 'tool error: ' : ''}${textOf(result)}`;
}

async function checkElicitation(report, peer) {
    const ask = () => peer.call('test_elicitation', { message: 'Who are you?' });
    await report.check('elicitation', async () => {
        const answer = () => ({ action: 'accept', content: { username: 'ada', email: 'ada@example.com' } });
        const [[question], result] = await asked(peer, 'elicit', answer, ask);
        same(question.message, 'Who are you?', 'message');
        must(textOf(result).includes('ada'), `text: ${textOf(result)}`);
    });
    await report.check('elicitation schema', async () => {
        const answer = () => ({ action: 'accept', content: { username: 'ada', email: 'ada@example.com' } });
        const [[question]] = await asked(peer, 'elicit', answer, ask);
        const { properties, required } = question.requestedSchema;
        same([properties.username?.type, properties.email?.type], ['string', 'string'], 'types');
        same([...required].sort(), ['email', 'username'], 'required');
    });
    for (const [name, action] of [['elicitation declined', 'decline'], ['elicitation cancelled', 'cancel']]) {
        await report.check(name, async () => {
            const [, result] = await asked(peer, 'elicit', () => ({ action }), ask);
            must(new RegExp(action, 'i').test(textOf(result)), `got ${textOf(result)}, want "${action}" in it`);
            return textAndError(result);
        });
    }
}

async function checkForms(report, peer) {
    await report.check('form defaults', async () => {
        const [[question]] = await asked(peer, 'elicit', peer.answers.elicit,
            () => peer.call('test_elicitation_sep1034_defaults', {}));
        const { name, age, score, status, verified } = question.requestedSchema.properties;
        same([name.type, name.default], ['string', 'John Doe'], 'name');
        same([age.type, age.default], ['integer', 30], 'age');
        same([score.type, score.default], ['number', 95.5], 'score');
        same([status.type, status.default, status.enum], ['string', 'active', ['active', 'inactive', 'pending']], 'status');
        same([verified.type, verified.default], ['boolean', true], 'verified');
    });
    await report.check('form enums', async () => {
        const [[question], result] = await asked(peer, 'elicit', peer.answers.elicit,
            () => peer.call('test_elicitation_sep1330_enums', {}));
        const fields = question.requestedSchema.properties;
        must(fields.untitledSingle.type === 'string' && fields.untitledSingle.enum.length > 0, 'untitledSingle');
        must(!fields.titledSingle.enum && fields.titledSingle.oneOf.every(o => o.const && o.title), 'titledSingle');
        must(fields.legacyEnum.enum.length === fields.legacyEnum.enumNames.length, 'legacyEnum');
        must(fields.untitledMulti.type === 'array' && fields.untitledMulti.items.enum.length > 0, 'untitledMulti');
        must(fields.titledMulti.items.anyOf.every(o => o.const && o.title), 'titledMulti');
        must(!result.isError, `tool error: ${textOf(result)}`);
    });
}

/** Checks the tools whose result is input_required in the modern era. A server of both eras asks a legacy client live. */
export async function checkInputRequired(report, peer, name) {
    await report.check(name, async () => {
        const called = [];
        const ask = async (tool, want) => {
            const result = await peer.call(tool, {});
            must(want.test(textOf(result)), `${tool}: ${textOf(result)}`);
            called.push(tool);
        };
        const form = params => ({ action: 'accept', content: fill(params.requestedSchema) });
        const [forms] = await asked(peer, 'elicit', form, async () => {
            await ask('test_input_required_result_elicitation', /^Hello, a name!$/);
            await ask('test_input_required_result_request_state', /state-ok/);
            await ask('test_input_required_result_multi_round', /./);
            await ask('test_input_required_result_tampered_state', /./);
        });
        same(forms[0].message, 'What is your name?', 'first question');
        must(forms.length >= 5, `${forms.length} questions, want one each and two for multi_round`);
        const [samples] = await asked(peer, 'sample', peer.answers.sample, async () => {
            await ask('test_input_required_result_sampling', /Paris/);
        });
        same(samples[0].maxTokens, 100, 'maxTokens');
        await asked(peer, 'roots', peer.answers.roots, async () => {
            await ask('test_input_required_result_list_roots', /interop.root/);
            await ask('test_input_required_result_multiple_inputs', /./);
        });
        return `${called.length} tools`;
    });
}

export async function checkPromptInput(report, peer, name) {
    await report.check(name, async () => {
        const [, prompt] = await asked(peer, 'elicit', params => ({ action: 'accept', content: fill(params.requestedSchema) }),
            () => peer.client.getPrompt({ name: 'test_input_required_result_prompt' }));
        must(prompt.messages.length > 0, 'no message');
        return textOf(prompt);
    });
}
