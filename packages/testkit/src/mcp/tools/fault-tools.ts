import { RawAnswer, type Tool } from '../features/call.ts'
import { textResult } from '../features/content.ts'
import { INVALID_PARAMS, notification, RpcError, success } from '../wire/json-rpc.ts'
import { URL_ELICITATION_REQUIRED } from '../wire/protocol.ts'
import { BOOLEAN, INTEGER, inputs, numberArg, STRING, stringArg } from './arguments.ts'
import { sleep, untilAborted } from './sleep.ts'

const MAX_BYTES = 64 * 1024 * 1024

/** Everything a server should not do, on demand. */
export const FAULT_TOOLS: readonly Tool[] = [
  {
    name: 'slow',
    description: 'Answers after some milliseconds',
    inputSchema: inputs({ ms: INTEGER }),
    run: async ({ args, signal }) => {
      await sleep(numberArg(args, 'ms', 100), signal)
      return textResult('slept')
    },
  },
  { name: 'hang', description: 'Never answers', inputSchema: inputs(), run: ({ signal }) => untilAborted(signal) },
  {
    name: 'crash',
    description: 'Ends the server process without an answer',
    inputSchema: inputs({ code: INTEGER }),
    run: ({ world, args, signal }) => {
      world.crash(numberArg(args, 'code', 1))
      return untilAborted(signal)
    },
  },
  {
    name: 'flood',
    description: 'Sends many notifications before it answers; `force` sends unrequested log messages',
    inputSchema: inputs({ count: INTEGER, bytes: INTEGER, kind: { type: 'string', enum: ['log', 'progress'] }, force: BOOLEAN }),
    run: async (call) => {
      const count = numberArg(call.args, 'count', 100)
      const padding = 'x'.repeat(Math.min(numberArg(call.args, 'bytes', 0), MAX_BYTES))
      for (let index = 1; index <= count; index += 1) {
        if (call.args['kind'] === 'progress') call.progress(index, count)
        else if (call.args['force'] === true)
          call.channel.send(notification('notifications/message', { level: 'info', data: `${index}${padding}` }))
        else call.log('info', `${index}${padding}`)
        if (index % 1_000 === 0) await sleep(0, call.signal)
      }
      return textResult(`sent ${count}`)
    },
  },
  {
    name: 'garbage',
    description: 'Writes something that is no message, then answers',
    inputSchema: inputs(),
    run: ({ channel }) => {
      channel.garbage()
      return textResult('after garbage')
    },
  },
  {
    name: 'wrong_id',
    description: 'Answers under an unused id',
    inputSchema: inputs(),
    run: () => {
      throw new RawAnswer(success('unused-id', { resultType: 'complete', ...textResult('wrong id') }))
    },
  },
  {
    name: 'close_mid_stream',
    description: 'Begins an answer and cuts the connection',
    inputSchema: inputs(),
    run: ({ channel, signal }) => {
      channel.breakOff()
      return untilAborted(signal)
    },
  },
  {
    name: 'big_result',
    description: 'Returns a text of the given number of bytes',
    inputSchema: inputs({ bytes: INTEGER }),
    run: ({ args }) => textResult('x'.repeat(Math.min(numberArg(args, 'bytes', 1_024), MAX_BYTES))),
  },
  {
    name: 'rpc_error',
    description: 'Answers with a JSON-RPC error of the given code',
    inputSchema: inputs({ code: INTEGER, message: STRING }),
    run: ({ args }) => {
      throw new RpcError(numberArg(args, 'code', INVALID_PARAMS), stringArg(args, 'message', 'on demand'), { data: { demanded: true } })
    },
  },
  {
    name: 'needs_url_consent',
    description: 'Legacy 2025-11-25: refuses with the error that sends the user to a URL',
    era: 'legacy',
    inputSchema: inputs(),
    run: () => {
      const elicitations = [{ mode: 'url', elicitationId: 'consent-1', url: 'https://example.com/consent', message: 'Please consent' }]
      throw new RpcError(URL_ELICITATION_REQUIRED, 'The user must visit a URL first', { data: { elicitations } })
    },
  },
]
