import type { Call, Tool } from '../features/call.ts'
import { textResult } from '../features/content.ts'
import { elicit, isDeclared, listRoots, sample } from '../features/input-requests.ts'
import { type JsonObject, objectOf } from '../wire/json-rpc.ts'
import { inputs, STRING } from './arguments.ts'

const NAME = elicit('What is your name?', { name: STRING })
const COLOUR = elicit('What is your favourite colour?', { color: STRING })
const CAPITAL = sample('What is the capital of France?')
const CONFIRM = elicit('Please confirm', { ok: { type: 'boolean' } })

/** Multi-round-trip requests. In the legacy era the same tools send real requests. */
export const MRTR_TOOLS: readonly Tool[] = [
  mrtr('elicitation', 'Asks for a name', async (call) => {
    const { user_name } = await call.ask({ user_name: NAME })
    return `Hello, ${contentOf(user_name)['name'] ?? 'stranger'}!`
  }),
  mrtr('sampling', 'Asks the model of the client', async (call) => {
    const { capital_question } = await call.ask({ capital_question: CAPITAL })
    return `The model said: ${JSON.stringify(capital_question?.['content'])}`
  }),
  mrtr('list_roots', 'Asks for the roots of the client', async (call) => {
    const { client_roots } = await call.ask({ client_roots: listRoots() })
    return `Roots: ${JSON.stringify(client_roots?.['roots'])}`
  }),
  mrtr('request_state', 'Gives the client a state to bring back', async (call) => {
    await call.ask({ confirm: CONFIRM }, { sealed: true })
    return call.resumed ? 'state-ok' : 'answered without a state'
  }),
  mrtr('multiple_inputs', 'Asks for three things at once', async (call) => {
    const answers = await call.ask({ user_name: NAME, greeting: CAPITAL, client_roots: listRoots() }, { sealed: true })
    return `Answers: ${Object.keys(answers).sort().join(', ')}`
  }),
  mrtr('multi_round', 'Asks one thing after the other', async (call) => {
    const { step1 } = await call.ask({ step1: NAME }, { sealed: true })
    const { step2 } = await call.ask({ step2: COLOUR }, { sealed: true })
    return `${contentOf(step1)['name']} likes ${contentOf(step2)['color']}`
  }),
  mrtr('tampered_state', 'Refuses a state that was changed on its way', async (call) => {
    await call.ask({ confirm: CONFIRM }, { sealed: true })
    return 'state-ok'
  }),
  mrtr('capabilities', 'Asks only for what the client declared', async (call) => {
    const wanted = Object.entries({ user_name: NAME, capital_question: CAPITAL })
    const possible = wanted.filter(([, request]) => isDeclared(request, call.origin.clientCapabilities))
    const answers = await call.ask(Object.fromEntries(possible))
    return `Answered: ${Object.keys(answers).join(', ') || 'nothing'}`
  }),
]

function mrtr(suffix: string, description: string, run: (call: Call) => Promise<string>): Tool {
  return {
    name: `test_input_required_result_${suffix}`,
    description,
    inputSchema: inputs(),
    run: async (call) => textResult(await run(call)),
  }
}

function contentOf(answer: JsonObject | undefined): JsonObject {
  return objectOf(answer?.['content'])
}
