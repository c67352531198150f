import { lookup } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { buildConnector } from 'undici'
import { httpError } from '../http-errors.ts'
import { type AddressPolicy, vetAddress, vetHost, vetVouchedAddress } from './address-policy.ts'
import type { ConnectHook } from './connect-hook.ts'

export interface ResolvedAddress {
  readonly address: string
  /** Instead of the port that was asked for. */
  readonly port?: number
}

/** The addresses of a host name, in the order to try. A platform without DNS of its own puts its service addresses here. */
export type Resolve = (host: string, port: number) => Promise<readonly ResolvedAddress[]>

export interface ConnectorOptions {
  /** Absent: every address is good, for backends that we started ourselves. */
  readonly policy?: AddressPolicy | undefined
  readonly resolve?: Resolve | undefined
  /** Asked before `resolve`, about names that it may know. */
  readonly hook?: ConnectHook | undefined
  readonly clock?: Clock
  /** For name resolution and all attempts together. */
  readonly connectTimeoutMs?: number
  /** For one attempt while there is another address to try. */
  readonly attemptTimeoutMs?: number
  readonly secureContext?: SecureContext | undefined
  /** Name to ask for and to verify instead of the host's. */
  readonly serverName?: string | undefined
}

type ConnectOptions = buildConnector.Options
type ConnectAttempt = (options: ConnectOptions) => Promise<Socket>

interface Places {
  readonly addresses: readonly ResolvedAddress[]
  /** The connect hook named them. */
  readonly vouched: boolean
}

const MAX_ADDRESSES = 8

/**
 * undici's `connect`: resolves the name itself, vets every address it resolves to, and connects to a vetted address, not to the name.
 * So the address that was checked is the one that is called, whatever DNS says a moment later. HTTP/1.1 only: with h2 the size of a
 * pool means nothing, and one dead connection takes everything with it.
 */
export function guardedConnector(options: ConnectorOptions): buildConnector.connector {
  const { clock = systemClock, connectTimeoutMs = 10_000, attemptTimeoutMs = 3_000, resolve = resolveByDns } = options
  const last = attemptWith(options, connectTimeoutMs)
  const early = attemptWith(options, Math.min(attemptTimeoutMs, connectTimeoutMs))

  async function connect(asked: ConnectOptions): Promise<Socket> {
    const deadline = clock.monotonic() + connectTimeoutMs
    const { addresses, vouched } = await placesOf(asked)
    try {
      return await firstThatAnswers(asked, addresses, deadline)
    } catch (failure) {
      if (!vouched || clock.monotonic() >= deadline) throw failure
      // Pods come and go: others may stand behind the name by now.
      options.hook?.forget(asked.hostname, portOf(asked))
      const again = await placesOf(asked)
      const others = again.addresses.filter((one) => !addresses.some((tried) => tried.address === one.address && tried.port === one.port))
      if (others.length === 0) throw failure
      return await firstThatAnswers(asked, others, deadline)
    }
  }

  async function firstThatAnswers(asked: ConnectOptions, addresses: readonly ResolvedAddress[], deadline: number): Promise<Socket> {
    let failure: unknown
    for (const [i, { address, port }] of addresses.entries()) {
      if (i > 0 && clock.monotonic() >= deadline) break
      const attempt = i === addresses.length - 1 ? last : early
      try {
        return await attempt({ ...asked, hostname: address, ...(port !== undefined && { port: String(port) }) })
      } catch (error) {
        failure = error // the next address may do; the last failure is the one reported
      }
    }
    throw failure
  }

  async function placesOf(asked: ConnectOptions): Promise<Places> {
    const { hostname } = asked
    const { policy, hook } = options
    if (isIP(hostname) !== 0) return outside([vetted({ address: hostname }, asked)])
    vetName(hostname, asked)
    const limit = { clock, ms: connectTimeoutMs, host: hostname }
    if (hook?.mayKnow(hostname) !== true) return outside(await vettedAddresses(hostname, asked))
    const answer = await withLimit(hook.resolve(hostname, portOf(asked)), limit)
    if (answer.kind === 'unknown') return outside(await vettedAddresses(hostname, asked))
    if (answer.kind === 'alias') {
      vetName(answer.host, asked)
      return outside(await vettedAddresses(answer.host, asked))
    }
    const verdicts = answer.addresses.map((place) => ({
      place,
      verdict: policy && vetVouchedAddress(place.address, policy, place.port ?? portOf(asked)),
    }))
    const good = verdicts.filter(({ verdict }) => verdict?.ok !== false).map(({ place }) => place)
    if (good.length > 0) return { addresses: good.slice(0, MAX_ADDRESSES), vouched: true }
    const refusal = verdicts[0]?.verdict
    throw refusal?.ok === false ? blocked(hostname, refusal.message) : httpError('backend_dns', `${hostname} has no address`)
  }

  function vetName(hostname: string, asked: ConnectOptions): void {
    const verdict = options.policy ? vetHost(hostname, options.policy, portOf(asked)) : undefined
    if (verdict?.ok === false) throw blocked(hostname, verdict.message)
  }

  async function vettedAddresses(hostname: string, asked: ConnectOptions): Promise<readonly ResolvedAddress[]> {
    const { policy } = options
    const found = await withLimit(resolve(hostname, portOf(asked)), { clock, ms: connectTimeoutMs, host: hostname })
    if (found.length === 0) throw httpError('backend_dns', `${hostname} has no address`)
    const good = found.filter(({ address, port = portOf(asked) }) => policy === undefined || vetAddress(address, policy, port).ok)
    return good.length > 0 ? good.slice(0, MAX_ADDRESSES) : found.slice(0, 1).map((address) => vetted(address, { ...asked, hostname }))
  }

  /** Throws when the policy forbids it. */
  function vetted(resolved: ResolvedAddress, asked: ConnectOptions): ResolvedAddress {
    const { address, port = portOf(asked) } = resolved
    const verdict = options.policy ? vetAddress(address, options.policy, port) : undefined
    if (verdict?.ok === false) throw blocked(asked.hostname, verdict.message)
    return resolved
  }

  return (asked, callback) => {
    connect(asked).then(
      (socket) => callback(null, socket),
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    )
  }
}

function attemptWith({ secureContext, serverName }: ConnectorOptions, timeout: number): ConnectAttempt {
  const connector = buildConnector({
    allowH2: false,
    timeout,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    ...(secureContext !== undefined && { secureContext }),
    ...(serverName !== undefined && { servername: serverName }),
  })
  return (options) =>
    new Promise((resolve, reject) => connector(options, (error, socket) => (error === null ? resolve(socket) : reject(error))))
}

function outside(addresses: readonly ResolvedAddress[]): Places {
  return { addresses, vouched: false }
}

function portOf({ port, protocol }: ConnectOptions): number {
  return Number(port || (protocol === 'https:' ? 443 : 80))
}

async function resolveByDns(host: string): Promise<readonly ResolvedAddress[]> {
  return await lookup(host, { all: true })
}

/** The system's resolver knows no limit. */
async function withLimit<T>(work: Promise<T>, { clock, ms, host }: { clock: Clock; ms: number; host: string }): Promise<T> {
  const limit = Promise.withResolvers<never>()
  const timer = clock.setTimer(ms, () => limit.reject(httpError('backend_dns', `${host} was not resolved within ${ms} ms`)))
  try {
    return await Promise.race([work, limit.promise])
  } finally {
    timer.cancel()
  }
}

function blocked(hostname: string, message: string): Error {
  return httpError('backend_blocked', message.startsWith(hostname) ? message : `${hostname}: ${message}`)
}
