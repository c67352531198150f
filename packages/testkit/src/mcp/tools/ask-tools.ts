import type { Call, InputRequest, Tool } from '../features/call.ts'
import { errorResult, jsonResult, textResult } from '../features/content.ts'
import { elicit, elicitUrl, listRoots, ping, sample } from '../features/input-requests.ts'
import { notification, RpcError } from '../wire/json-rpc.ts'
import { INTEGER, inputs, numberArg, STRING, stringArg } from './arguments.ts'
import { sleep } from './sleep.ts'

const PERSON = { username: { type: 'string', description: 'Your name' }, email: { type: 'string', description: 'Your e-mail address' } }

/** Tools that need the client in the middle of a call. */
export const ASK_TOOLS: readonly Tool[] = [
  {
    name: 'ask',
    description: 'Asks the client: sampling, elicitation, url, roots or (legacy) ping, `count` at a time; returns the answers',
    inputSchema: inputs({ kind: STRING, message: STRING, count: INTEGER, via: { type: 'string', enum: ['call', 'standalone'] } }),
    run: async (call) => {
      const request = requestOf(call, 'elicitation')
      if (!request) return errorResult('There is no request of this kind')
      const count = Math.min(numberArg(call.args, 'count', 1), 20)
      const requests = Object.fromEntries(Array.from({ length: count }, (_, index) => [`answer_${index + 1}`, request]))
      return jsonResult({ answers: await call.ask(requests, { standalone: call.args['via'] === 'standalone' }) })
    },
  },
  {
    name: 'later',
    description: 'Answers at once; some milliseconds later it asks the client (sampling, elicitation, url, roots, ping) or logs (log)',
    era: 'legacy',
    inputSchema: inputs({ kind: STRING, message: STRING, ms: INTEGER }),
    run: (call) => {
      void speakLater(call)
      return textResult('later')
    },
  },
  {
    name: 'late_answers',
    description: 'Returns what came of the requests of `later`, oldest first',
    inputSchema: inputs(),
    run: ({ world }) => jsonResult({ answers: world.lateAnswers }),
  },
  {
    name: 'test_sampling',
    description: 'Asks the model of the client',
    inputSchema: inputs({ prompt: STRING }),
    run: async (call) => {
      const { sampling } = await call.ask({ sampling: sample(stringArg(call.args, 'prompt', 'Hello')) })
      return textResult(`LLM response: ${JSON.stringify(sampling?.['content'])}`)
    },
  },
  {
    name: 'test_elicitation',
    description: 'Asks the user for a name and an e-mail address',
    inputSchema: inputs({ message: STRING }),
    run: (call) => elicitation(call, elicit(stringArg(call.args, 'message', 'Who are you?'), PERSON)),
  },
  {
    name: 'test_streaming_elicitation',
    description: 'Asks the user for a name',
    inputSchema: inputs(),
    run: (call) => elicitation(call, elicit('What is your name?', { name: STRING })),
  },
  {
    name: 'test_elicitation_sep1034_defaults',
    description: 'Asks with a default for each primitive type',
    inputSchema: inputs(),
    run: (call) =>
      elicitation(
        call,
        elicit('Please check the defaults', {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95.5 },
          status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', default: true },
        }),
      ),
  },
  {
    name: 'test_elicitation_sep1330_enums',
    description: 'Asks with each form of choice',
    inputSchema: inputs(),
    run: (call) => elicitation(call, elicit('Please choose', ENUMS, [])),
  },
  {
    name: 'test_missing_capability',
    description: 'Needs a client that can sample',
    inputSchema: inputs(),
    run: async (call) => {
      await call.ask({ sampling: sample('Hello') })
      return textResult('The client can sample')
    },
  },
]

const PLAIN = ['option1', 'option2', 'option3']
const TITLED = ['value1', 'value2', 'value3'].map((value, index) => ({ const: value, title: `Option ${index + 1}` }))
const ENUMS = {
  untitledSingle: { type: 'string', enum: PLAIN },
  titledSingle: { type: 'string', oneOf: TITLED },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
  untitledMulti: { type: 'array', items: { type: 'string', enum: PLAIN } },
  titledMulti: { type: 'array', items: { anyOf: TITLED } },
}

async function elicitation(call: Call, request: InputRequest): Promise<ReturnType<typeof textResult>> {
  const { user_input } = await call.ask({ user_input: request })
  return textResult(`User response: action=${user_input?.['action']}, content=${JSON.stringify(user_input?.['content'] ?? {})}`)
}

/** The call is over by then, so nothing says to which client or call this belongs. */
async function speakLater(call: Call): Promise<void> {
  const { args, world } = call
  try {
    await sleep(numberArg(args, 'ms', 0), world.signal)
    const request = requestOf(call, 'ping')
    if (request) world.lateAnswers.push(await call.ask({ answer: request }, { standalone: true }))
    else call.unsolicited(notification('notifications/message', { level: 'info', data: stringArg(args, 'message', 'late') }))
  } catch (error) {
    const code = error instanceof RpcError ? { code: error.code } : {}
    world.lateAnswers.push({ error: { ...code, message: error instanceof Error ? error.message : String(error) } })
  }
}

function requestOf({ args, era }: Call, fallback: string): InputRequest | undefined {
  const kind = stringArg(args, 'kind', fallback)
  const message = stringArg(args, 'message', 'What is it?')
  if (kind === 'ping' && era === 'legacy') return ping()
  if (kind === 'sampling') return sample(message)
  if (kind === 'elicitation') return elicit(message, { value: STRING })
  if (kind === 'url') return elicitUrl(message, 'https://example.com/consent')
  return kind === 'roots' ? listRoots() : undefined
}
