import { type HeaderMap, headerText } from '@thv/http/header-map'
import type { AddressPolicy } from '@thv/http/outbound/address-policy'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { OutboundRequest, ResponseSink } from '@thv/http/outbound/outbound-call'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { awayFromPlace, type FetchPlace, placedSink } from '../fetch/fetch-address.ts'
import { isRedirect, MAX_REDIRECTS, redirected } from '../fetch/redirects.ts'
import { allowHint } from '../fetch/source-addresses.ts'
import { failed, overLimit } from './git-error.ts'

export interface GitHttpOptions {
  readonly outbound: Outbound
  readonly policy: AddressPolicy
  readonly signal: AbortSignal
  readonly place?: FetchPlace | undefined
  /** Without user and password. */
  readonly repository: URL
  /** Value of the Authorization header, for the origin of the repository alone. */
  readonly authorization: string | undefined
  /** Of silence. */
  readonly idleMs: number
  /** Of all answers together. */
  readonly maxWireBytes: number
}

/** The two requests of git's smart protocol. Answers are given on as they come. */
export interface GitHttp {
  /** Where the repository is, for messages. */
  readonly place: string
  /** First, since it finds out where the repository has moved to. */
  advertisement(onData: (chunk: Buffer) => void): Promise<void>
  uploadPack(body: string, onData: (chunk: Buffer) => void): Promise<void>
}

const SERVICE = 'git-upload-pack'
const TAIL = '/info/refs'
/** Some hosts send their web pages to clients that do not look like git. */
export const AGENT = 'git/2.40.0-thv-registry'

interface Call {
  readonly method: 'GET' | 'POST'
  readonly headers: readonly string[]
  readonly body?: string
  readonly contentType: string
  readonly onData: (chunk: Buffer) => void
}

export function createGitHttp(options: GitHttpOptions): GitHttp {
  const { repository, signal } = options
  const place = repository.href
  let base = new URL(repository)
  let wireLeft = options.maxWireBytes

  async function advertisement(onData: (chunk: Buffer) => void): Promise<void> {
    let url = new URL(`${repository.origin}${repository.pathname.replace(/\/+$/, '')}${TAIL}?service=${SERVICE}`)
    const call: Call = { method: 'GET', headers: [], contentType: `application/x-${SERVICE}-advertisement`, onData }
    for (let redirects = 0; ; redirects++) {
      const location = await send(url, call)
      if (location === undefined) break
      if (redirects === MAX_REDIRECTS) throw failed(`${place} redirects more than ${MAX_REDIRECTS} times`)
      url = moved(url, location)
    }
    base = new URL(url.origin + url.pathname.slice(0, -TAIL.length))
  }

  async function uploadPack(body: string, onData: (chunk: Buffer) => void): Promise<void> {
    const url = new URL(`${base.origin}${base.pathname}/${SERVICE}`)
    const headers = ['content-type', `application/x-${SERVICE}-request`]
    const location = await send(url, { method: 'POST', headers, body, contentType: `application/x-${SERVICE}-result`, onData })
    if (location !== undefined) throw failed(`${place} redirects a request that cannot be repeated elsewhere`)
  }

  /** Where it redirects to, if it does. */
  async function send(url: URL, call: Call): Promise<string | undefined> {
    const authorized = options.authorization !== undefined && url.origin === repository.origin
    let location: string | undefined
    try {
      await sendAway(
        url,
        {
          method: call.method,
          path: url.pathname + url.search,
          headers: [
            ...['user-agent', AGENT, 'git-protocol', 'version=2', 'accept', call.contentType],
            ...(authorized ? ['authorization', options.authorization] : []),
            ...call.headers,
          ],
          ...(call.body !== undefined && { body: call.body }),
          signal,
          headersTimeoutMs: options.idleMs,
          bodyTimeoutMs: options.idleMs,
        },
        {
          start(status, headers) {
            if (isRedirect(status)) location = headerText(headers['location'])
            const problem = answerProblem(status, headers, call.contentType)
            if (problem !== undefined)
              throw failed(`${place}${url.origin === repository.origin ? '' : ` (now at ${url.origin})`} ${problem(authorized)}`)
          },
          data(chunk) {
            wireLeft -= chunk.length
            if (wireLeft < 0) throw overLimit(`${place} sends more than ${options.maxWireBytes} bytes`)
            call.onData(chunk)
          },
          end() {},
        },
      )
    } catch (error) {
      if (location !== undefined) return location
      throw readable(error)
    }
    return undefined
  }

  async function sendAway(url: URL, request: OutboundRequest, sink: ResponseSink): Promise<void> {
    const target = options.outbound.target({ url: url.origin, policy: options.policy })
    const receivedBytes = options.maxWireBytes - wireLeft
    await awayFromPlace(options, () => target.send(request, placedSink(sink, { ...options, receivedBytes })), receivedBytes)
  }

  function readable(error: unknown): unknown {
    if (!isThvError(error) || !error.code.startsWith('backend_')) return error
    if (error.code === 'backend_blocked')
      return new ThvError('source_blocked', `${place} may not be fetched: ${error.message}${allowHint(error.message)}`)
    if (error.code === 'backend_timeout') return overLimit(`${place} was silent for ${options.idleMs} ms`)
    return failed(`${place} cannot be read: ${error.message}`)
  }

  function moved(from: URL, location: string): URL {
    const to = redirected(from, location, place)
    if (!to.pathname.endsWith(TAIL) || to.searchParams.get('service') !== SERVICE)
      throw failed(`${place} redirects to ${to.origin}, to something that is no git repository`)
    return to
  }

  return { place, advertisement, uploadPack }
}

type Problem = (authorized: boolean) => string

function answerProblem(status: number, headers: HeaderMap, contentType: string): Problem | undefined {
  if (status === 401)
    return (authorized) => (authorized ? 'refuses this user name and password' : 'asks for a user name and password: give them in git.auth')
  if (status === 403) return (authorized) => `forbids it${authorized ? ' to this user' : ''} (403)`
  if (status === 404 || status === 410) return () => `has no git repository (${status}), or none without credentials`
  if (status === 429 || status === 503) return () => `is too busy (${status})`
  if (status !== 200) return () => `answers with status ${status}`
  if (headerText(headers['content-encoding']) !== undefined) return () => 'compresses its answer without having been asked to'
  if (headerText(headers['content-type'])?.split(';')[0]?.trim().toLowerCase() !== contentType)
    return () => 'is no git repository with the smart HTTP protocol'
  return undefined
}
