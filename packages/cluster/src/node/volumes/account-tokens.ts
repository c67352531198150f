import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import type { NodePod, TokenSource } from '../pod/pod-spec.ts'

interface Held {
  readonly token: string
  readonly renewAt: number
}

const DEFAULT_SECONDS = 3_600
/** Share of its life after which a token is renewed. */
const RENEW_AT = 0.8

/** Tokens of one pod's ServiceAccount, bound to the pod. Each is kept until it should be renewed. */
export class AccountTokens {
  readonly #client: KubeClient
  readonly #clock: Clock
  readonly #held = new Map<string, Held>()

  constructor(client: KubeClient, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  /** When the first one should be renewed, on the clock's monotonic time. */
  get renewAt(): number | undefined {
    const times = [...this.#held.values()].map(({ renewAt }) => renewAt)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  async get(pod: NodePod, source: TokenSource, signal: AbortSignal): Promise<string> {
    const key = JSON.stringify([source.audience ?? '', source.expirationSeconds ?? 0])
    const held = this.#held.get(key)
    if (held !== undefined && held.renewAt > this.#clock.monotonic()) return held.token
    try {
      const fresh = await this.#request(pod, source, signal)
      this.#held.set(key, fresh)
      return fresh.token
    } catch (error) {
      // An old token is better than none; it is asked for again soon.
      if (held === undefined) throw error
      this.#held.set(key, { token: held.token, renewAt: this.#clock.monotonic() + RETRY_MS })
      return held.token
    }
  }

  async #request(pod: NodePod, source: TokenSource, signal: AbortSignal): Promise<Held> {
    const { name, namespace, uid } = pod.metadata
    const expirationSeconds = source.expirationSeconds ?? DEFAULT_SECONDS
    const account = encodeURIComponent(pod.spec.serviceAccountName ?? 'default')
    const answer = await this.#client.raw('POST', `/api/v1/namespaces/${encodeURIComponent(namespace)}/serviceaccounts/${account}/token`, {
      signal,
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          ...(source.audience && { audiences: [source.audience] }),
          expirationSeconds,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
        },
      },
    })
    const { status } = answer.json() as { status?: { token?: string; expirationTimestamp?: string } }
    if (!status?.token) throw new ThvError('kube_response_malformed', 'the answer to a TokenRequest has no token')
    const expires = Date.parse(status.expirationTimestamp ?? '')
    const lifeMs = Number.isNaN(expires) ? expirationSeconds * 1_000 : expires - this.#clock.now()
    return { token: status.token, renewAt: this.#clock.monotonic() + Math.max(MIN_LIFE_MS, lifeMs * RENEW_AT) }
  }
}

const RETRY_MS = 30_000
const MIN_LIFE_MS = 10_000
