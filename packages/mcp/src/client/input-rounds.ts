import { createBackoff } from '@thv/kernel/backoff'
import { ThvError } from '@thv/kernel/errors'
import { isObject, type JsonObject } from '../json-rpc.ts'
import { INPUT_METHODS } from '../methods.ts'
import { type ClientContext, handlerFor } from './client-context.ts'
import { protocolError } from './client-errors.ts'
import type { ClientHandlers } from './mcp-client.ts'

export interface InputRounds {
  readonly context: ClientContext
  readonly method: string
  readonly params: JsonObject
  readonly handlers: ClientHandlers
  readonly signal: AbortSignal
  /** Sends the request with these params under a new id; gives its result. */
  send(params: JsonObject): Promise<JsonObject>
}

/**
 * Sends a modern request again until its result is complete (M31 to M36): whatever the server wants to know is asked of the handlers, and the
 * same request goes out again with their answers of this round alone, and the server's state exactly as it came.
 */
export async function answerInput(first: JsonObject, rounds: InputRounds): Promise<JsonObject> {
  const { context, params, send, signal } = rounds
  const { maxRounds, maxStateOnlyRounds } = context.limits
  const pace = createBackoff({ baseMs: 100, maxMs: 5_000 })
  let result = first
  for (let round = 0; result['resultType'] === 'input_required'; round++) {
    if (round >= maxRounds) throw tooMany(`asked for input more than ${maxRounds} times`)
    const { requests, state } = readInputRequired(result, rounds.method)
    if (requests === undefined) {
      await context.clock.sleep(pace.next(), signal)
      if (pace.failures > maxStateOnlyRounds) throw tooMany(`put the request off more than ${maxStateOnlyRounds} times`)
    } else {
      pace.reset()
    }
    const inputResponses = requests && (await answersTo(requests, rounds))
    result = await send({ ...params, ...(inputResponses && { inputResponses }), ...(state !== undefined && { requestState: state }) })
  }
  return result
}

function readInputRequired(result: JsonObject, method: string): { requests: JsonObject | undefined; state: string | undefined } {
  const { inputRequests: requests, requestState: state } = result
  if (!INPUT_METHODS.has(method)) throw protocolError(`asked for input where it may not, in ${method}`)
  if (requests !== undefined && !isObject(requests)) throw protocolError('sent inputRequests that are no object')
  if (state !== undefined && typeof state !== 'string') throw protocolError('sent a requestState that is no string')
  if (requests === undefined && state === undefined) throw protocolError('asked for input without saying which')
  return { requests, state }
}

async function answersTo(requests: JsonObject, rounds: InputRounds): Promise<JsonObject> {
  const { context, handlers, signal } = rounds
  const entries = Object.entries(requests)
  if (entries.length > context.limits.maxServerRequests) throw tooMany(`asked ${entries.length} things at once`)
  const answers = entries.map(async ([key, request]) => {
    const method = isObject(request) ? request['method'] : undefined
    const handler = typeof method === 'string' ? handlerFor(method, handlers) : undefined
    if (!isObject(request) || handler === undefined)
      throw protocolError(`asked for ${JSON.stringify(method)}, which this client did not offer`)
    const params = isObject(request['params']) ? request['params'] : {}
    return [key, await handler(params, { signal })] as const
  })
  return Object.fromEntries(await Promise.all(answers))
}

function tooMany(what: string): ThvError {
  return new ThvError('mcp_limit', `the MCP server ${what}`)
}
