import { connect } from 'node:net'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { programEnv } from '@thv/kernel/program-scope'
import { httpError } from '../http-errors.ts'
import type { ResolvedAddress } from './guarded-connector.ts'

/** The meaning of a name on the platform. */
export type HookAnswer =
  /** Ready pods behind the name, in the order to try. The platform vouches for them: on loopback they count as private addresses. */
  | { readonly kind: 'addresses'; readonly addresses: readonly ResolvedAddress[] }
  /** Another name for what is outside; to be resolved and vetted as if it had been asked for. */
  | { readonly kind: 'alias'; readonly host: string }
  /** Not a name of the platform: DNS may know it. */
  | { readonly kind: 'unknown' }

/** Asks the platform where its names lead, before DNS is asked. */
export interface ConnectHook {
  /** By the form of the name alone, so that most names cost nothing. */
  mayKnow(host: string): boolean
  /** Rejects with `backend_refused` when nothing is ready behind a name, with `backend_dns` when it or the platform's resolver is not there. */
  resolve(host: string, port: number): Promise<HookAnswer>
  /** Its answer was unreachable: the next `resolve` asks again. */
  forget(host: string, port: number): void
}

type Env = Readonly<Record<string, string | undefined>>

export interface ConnectHookOptions {
  readonly clock?: Clock
  /** How long an answer is used. */
  readonly cacheMs?: number
  /** For one question. */
  readonly timeoutMs?: number
}

const MAX_CACHED = 256
const MAX_ANSWER = 65_536

/**
 * From THV_RESOLVER (`unix:PATH` or `tcp:HOST:PORT:TOKEN`), which the embedded platform sets for its pods; undefined without it. Throws
 * a TypeError when it is not of that form: the process was started by something that speaks another version.
 */
export function connectHookFromEnv(env: Env = programEnv(), options: ConnectHookOptions = {}): ConnectHook | undefined {
  const text = env['THV_RESOLVER']
  if (!text) return undefined
  const resolver = parseResolver(text)
  const { clock = systemClock, cacheMs = 1_000, timeoutMs = 2_000 } = options
  const caller = { namespace: env['THV_RESOLVER_NAMESPACE'] || env['POD_NAMESPACE'], from: env['THV_BIND_ADDRESS'] }
  const cache = new Map<string, { readonly until: number; readonly answer: Promise<ResolverAnswer>; turn: number }>()

  function ask(host: string, port: number): { readonly answer: Promise<ResolverAnswer>; turn: number } {
    const key = `${host} ${port}`
    const known = cache.get(key)
    if (known !== undefined && known.until > clock.monotonic()) return known
    const answer = askResolver(resolver, { ...caller, host, port, token: resolver.token }, { clock, timeoutMs })
    const entry = { until: clock.monotonic() + cacheMs, answer, turn: 0 }
    cache.delete(key)
    cache.set(key, entry)
    const oldest = cache.keys().next().value
    if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest)
    // The waiting callers see the failure; the next one asks again.
    answer.catch(() => cache.get(key) === entry && cache.delete(key))
    return entry
  }

  return {
    mayKnow: (host) => CLUSTER_NAME.test(host) && host !== 'localhost',
    async resolve(host, port) {
      const entry = ask(host, port)
      return hookAnswer(await entry.answer, entry.turn++)
    },
    forget: (host, port) => void cache.delete(`${host} ${port}`),
  }
}

/** One or two labels, or anything with `svc` in its place: other names cannot be the platform's, and never wait for it. */
const CLUSTER_NAME = /^[^.]+(\.[^.]+)?\.?$|^[^.]+\.[^.]+\.(?:[^.]+\.)?svc(\.|$)/i

interface ResolverPlace {
  readonly at: { readonly path: string } | { readonly host: string; readonly port: number }
  readonly token?: string
}

function parseResolver(text: string): ResolverPlace {
  if (text.startsWith('unix:') && text.length > 5) return { at: { path: text.slice(5) } }
  const [, host, port, token] = /^tcp:([\d.]+):(\d{1,5}):([\w-]+)$/.exec(text) ?? []
  if (host === undefined || port === undefined || token === undefined)
    throw new TypeError('THV_RESOLVER is neither unix:PATH nor tcp:HOST:PORT:TOKEN')
  return { at: { host, port: Number(port) }, token }
}

/** As on the wire: a line of JSON each way. */
interface ResolverAnswer {
  readonly addresses?: readonly ResolvedAddress[]
  /** The first address is this caller's: not to be taken in turn. */
  readonly sticky?: boolean
  readonly alias?: string
  /** The name is the platform's, but nothing is ready behind it. */
  readonly refused?: string
  /** The name has the form of the platform's, but there is no such thing. */
  readonly missing?: string
  readonly problem?: string
}

function hookAnswer(answer: ResolverAnswer, turn: number): HookAnswer {
  if (answer.refused !== undefined) throw httpError('backend_refused', answer.refused)
  if (answer.missing !== undefined) throw httpError('backend_dns', answer.missing)
  if (answer.problem !== undefined) throw httpError('backend_dns', `the platform's resolver: ${answer.problem}`)
  if (answer.alias !== undefined) return { kind: 'alias', host: answer.alias }
  const { addresses } = answer
  if (addresses === undefined) return { kind: 'unknown' }
  const first = answer.sticky === true || addresses.length === 0 ? 0 : turn % addresses.length
  return { kind: 'addresses', addresses: [...addresses.slice(first), ...addresses.slice(0, first)] }
}

/** One connection for one question: both are rare, since connections to backends are kept. */
function askResolver(
  { at }: ResolverPlace,
  question: object,
  { clock, timeoutMs }: { clock: Clock; timeoutMs: number },
): Promise<ResolverAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(at)
    const chunks: Buffer[] = []
    let size = 0
    const fail = (why: string, cause?: unknown) => {
      settle()
      reject(httpError('backend_dns', `the platform's resolver ${why}`, cause === undefined ? {} : { cause }))
    }
    const settle = () => {
      timer.cancel()
      socket.destroy()
    }
    const timer = clock.setTimer(timeoutMs, () => fail(`did not answer within ${timeoutMs} ms`))
    socket.on('error', (error) => fail(`cannot be reached: ${errorMessage(error)}`, error))
    socket.on('close', () => fail('closed the connection without an answer')) // after an answer there is no listener
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > MAX_ANSWER) return fail('answered with too much')
      if (!chunk.includes(10)) return
      try {
        const answer = parseAnswer(Buffer.concat(chunks).toString('utf8'))
        settle()
        resolve(answer)
      } catch (error) {
        fail('answered with what is not understood', error)
      }
    })
    socket.write(`${JSON.stringify(question)}\n`)
  })
}

/** Throws on what has not the form of an answer. */
function parseAnswer(text: string): ResolverAnswer {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) throw new TypeError('not an object')
  const answer = value as Record<string, unknown>
  for (const key of ['alias', 'refused', 'missing', 'problem']) {
    if (answer[key] !== undefined && typeof answer[key] !== 'string') throw new TypeError(`${key} is not a text`)
  }
  const { addresses } = answer
  if (addresses !== undefined && !(Array.isArray(addresses) && addresses.every(isAddress))) throw new TypeError('addresses are malformed')
  return answer
}

function isAddress(value: unknown): value is ResolvedAddress {
  if (typeof value !== 'object' || value === null || !('address' in value) || !('port' in value)) return false
  return typeof value.address === 'string' && Number.isInteger(value.port)
}
