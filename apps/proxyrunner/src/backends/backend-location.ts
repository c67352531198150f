import { type BackendAddress, localAddress, remoteAddress } from '@thv/gateway/relay/backend-address'
import { httpError } from '@thv/http/http-errors'
import { vetUrl } from '@thv/http/outbound/address-policy'
import type { CaBundle } from '@thv/http/outbound/ca-bundle'
import type { Outbound, Target } from '@thv/http/outbound/outbound'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Log } from '@thv/telemetry/log'
import type { Runtime, WorkloadState } from '../runtime/runtime.ts'

/** Where the backend is: a remote one from the start, one of ours when the runtime has started it. */
export interface BackendLocation {
  readonly current: { readonly address: BackendAddress; readonly target: Target } | undefined
  readonly state: WorkloadState
  /** Called after each change of either. */
  onChange(listener: () => void): void
}

export interface RemoteLocationOptions {
  readonly config: Pick<RunConfig, 'remote_policy'> & { readonly remote_url: string }
  readonly outbound: Outbound
  readonly ca: CaBundle | undefined
  /** Of the endpoint, where the URL has none. */
  readonly path: string
  /** Of the Kubernetes API server. */
  readonly blockedAddresses: readonly string[]
}

/** Throws `backend_blocked` when the policy forbids the address as it is written; what it resolves to is checked with each connection. */
export function remoteLocation({ config, outbound, ca, path, blockedAddresses }: RemoteLocationOptions): BackendLocation {
  const { deny_private: denyPrivate, allow_private: allowPrivate, allow_loopback: allowLoopback } = config.remote_policy
  const policy = { denyPrivate, allowPrivate, allowLoopback, blockedAddresses }
  const verdict = vetUrl(config.remote_url, policy)
  if (!verdict.ok) throw httpError('backend_blocked', `remote_url: ${verdict.message}${HINTS[verdict.problem] ?? ''}`)
  const address = remoteAddress(config.remote_url, path)
  const target = outbound.target({ url: address.origin, ca, policy })
  return {
    current: { address, target },
    state: { ready: true, message: 'the server runs elsewhere', generation: 0 },
    onChange: () => {},
  }
}

const HINTS: Readonly<Record<string, string>> = {
  loopback_blocked: '; set remote_policy.allow_loopback to allow it',
  private_blocked: '; set remote_policy.allow_private to allow it',
}

export interface LocalLocationOptions {
  readonly runtime: Runtime
  readonly outbound: Outbound
  readonly path: string
  /** Call the server `localhost`, not by the name of its Service. */
  readonly asLocalhost?: boolean
  readonly clock: Clock
  readonly log: Log
  /** Ends the server too. */
  readonly signal: AbortSignal
}

/** Has the runtime start the server, as often as it takes. */
export function localLocation({ runtime, outbound, path, asLocalhost = false, clock, log, signal }: LocalLocationOptions): BackendLocation {
  const listeners: (() => void)[] = []
  const changed = () => {
    for (const listener of listeners) listener()
  }
  let current: BackendLocation['current']
  let state = (): WorkloadState => ({ ready: false, message: 'the server is being started', generation: 0 })

  async function start(): Promise<void> {
    const backoff = createBackoff({ baseMs: 500, maxMs: 30_000 })
    while (!signal.aborted) {
      try {
        const handle = await runtime.startServer(signal)
        const hostHeader = asLocalhost ? `localhost:${handle.url.port || 80}` : undefined
        current = { address: localAddress(handle.url, path), target: outbound.target({ url: handle.url.origin, hostHeader }) }
        state = () => handle.state
        handle.onChange(changed)
        changed()
        return
      } catch (error) {
        if (signal.aborted) return
        const message = `the server could not be started: ${errorMessage(error)}`
        state = () => ({ ready: false, message, generation: 0 })
        log.error(message)
        changed()
      }
      await clock.sleep(backoff.next(), signal).catch(() => undefined) // the loop sees the signal
    }
  }

  void start()
  return {
    get current() {
      return current
    },
    get state() {
      return state()
    },
    onChange: (listener) => void listeners.push(listener),
  }
}

/** The endpoint of each transport, where nothing else is said. */
export const ENDPOINT_PATHS = { 'streamable-http': '/mcp', sse: '/sse' } as const
