import { abortable } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { SseEvent } from '../../sse-decoder.ts'
import type { ClientContext } from '../client-context.ts'
import { FootingLost, protocolError } from '../client-errors.ts'
import type { DuplexChannel, DuplexLink } from '../duplex-link.ts'
import { httpError } from '../http-failure.ts'
import { AnswerReader, messageIn } from './answer-reader.ts'
import type { HttpEndpoint } from './http-endpoint.ts'

/**
 * HTTP+SSE of 2024-11-05: one GET stream for everything the server says, which names the URL to POST to in its first event. Its
 * end is the end of the session. Rejects when there is no such stream at this URL.
 */
export async function openSseChannel(
  link: DuplexLink,
  options: { endpoint: HttpEndpoint; context: ClientContext; signal: AbortSignal },
): Promise<DuplexChannel> {
  const { endpoint, context, signal } = options
  const life = new AbortController()
  const named = Promise.withResolvers<URL>()
  const onEvent = (event: SseEvent) => {
    if (event.event !== 'endpoint') take(link, event)
    else named.resolve(messageUrl(event.data, endpoint.url))
  }
  const reader = new AnswerReader({ maxBytes: context.limits.maxMessageBytes, onEvent })
  const headers = { accept: 'text/event-stream', 'cache-control': 'no-store' }
  const streaming = endpoint.send({ method: 'GET', headers, purpose: 'stream', signal: life.signal }, reader)
  streaming.then(
    () => ended(httpError(reader) ?? protocolError('ended its event stream')),
    (error: unknown) => ended(error),
  )

  function ended(error: unknown): void {
    named.reject(error)
    link.end(new ThvError('mcp_stream_broken', 'the event stream of the MCP server ended', { cause: error }))
  }

  async function post(url: URL, json: string, postSignal: AbortSignal): Promise<void> {
    const answer = new AnswerReader({ maxBytes: context.limits.maxMessageBytes, onEvent: () => {} })
    await endpoint.send({ method: 'POST', url, headers: { 'content-type': 'application/json' }, body: json, signal: postSignal }, answer)
    const failure = httpError(answer)
    if (failure === undefined) return
    if (failure.status === 404)
      throw new FootingLost('the MCP server does not know its session any more', { mayRetry: true, cause: failure })
    throw failure
  }

  try {
    const url = await abortable(named.promise, signal)
    return {
      write: (json, postSignal) => post(url, json, postSignal),
      close: async () => life.abort(new ThvError('aborted', 'the MCP client is closed')),
    }
  } catch (error) {
    life.abort(new ThvError('aborted', `given up: ${errorMessage(error)}`))
    throw error
  }
}

function take(link: DuplexLink, event: SseEvent): void {
  const body = messageIn(event)
  if (body?.kind === 'invalid') link.takeInvalid(body)
  else if (body) link.take(body)
}

/** Another origin would get our headers and messages, so it is refused. */
function messageUrl(data: string, base: URL): URL {
  const url = URL.parse(data, base)
  if (url === null) throw protocolError('named no valid URL to send messages to')
  if (url.origin !== base.origin) throw protocolError(`named a URL of another origin to send messages to: ${url.origin}`)
  return url
}
