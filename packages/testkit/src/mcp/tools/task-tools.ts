import type { Tool } from '../features/call.ts'
import { errorResult, textResult } from '../features/content.ts'
import { elicit } from '../features/input-requests.ts'
import { INTERNAL_ERROR, objectOf, RpcError } from '../wire/json-rpc.ts'
import { BOOLEAN, inputs, numberArg, STRING, stringArg } from './arguments.ts'
import { sleep } from './sleep.ts'

const SHORT_MS = 300
const CONFIRM = { confirm: BOOLEAN }

/** Tools of the tasks extension. Without it those that need no task run in the request. */
export const TASK_TOOLS: readonly Tool[] = [
  {
    name: 'slow_compute',
    description: 'Works for a number of seconds',
    task: 'optional',
    inputSchema: inputs({ seconds: { type: 'number' }, label: STRING }),
    run: async ({ args, signal }) => {
      await sleep(numberArg(args, 'seconds', 1) * 1_000, signal)
      return textResult(`Computed ${stringArg(args, 'label', 'something')}`)
    },
  },
  {
    name: 'failing_job',
    description: 'Fails, as a tool fails; runs only as a task',
    task: 'required',
    inputSchema: inputs(),
    run: async ({ signal }) => {
      await sleep(SHORT_MS, signal)
      return errorResult('The job failed')
    },
  },
  {
    name: 'protocol_error_job',
    description: 'Fails with a protocol error',
    task: 'optional',
    inputSchema: inputs(),
    run: async ({ signal }) => {
      await sleep(SHORT_MS, signal)
      throw new RpcError(INTERNAL_ERROR, 'The job broke')
    },
  },
  {
    name: 'confirm_delete',
    description: 'Asks before it deletes',
    task: 'optional',
    inputSchema: inputs({ filename: STRING }),
    run: async (call) => {
      const file = stringArg(call.args, 'filename', 'nothing')
      const { confirm } = await call.ask({ confirm: elicit(`Delete ${file}?`, CONFIRM) })
      return textResult(objectOf(confirm?.['content'])['confirm'] === true ? `Deleted ${file}` : `Kept ${file}`)
    },
  },
  {
    name: 'multi_input',
    description: 'Asks two things at once',
    task: 'optional',
    inputSchema: inputs(),
    run: async (call) => {
      const answers = await call.ask({ first: elicit('First?', { name: STRING }), second: elicit('Second?', { name: STRING }) })
      return textResult(`Got ${Object.keys(answers).length} answers`)
    },
  },
  {
    name: 'test_tool_with_task',
    description: 'Asks for a name, then becomes a task',
    task: 'required',
    inputSchema: inputs(),
    prepare: async (call) => {
      const { user_name } = await call.ask({ user_name: elicit('What is your name?', { name: STRING }) })
      return { user: objectOf(user_name?.['content'])['name'] ?? 'stranger' }
    },
    run: async ({ args, signal }) => {
      await sleep(SHORT_MS, signal)
      return textResult(`Hello, ${String(args['user'])}!`)
    },
  },
]
