import { gateways, httpRoutes, type KindVersions, referenceGrants } from '@thv/catalog/cluster/cluster-kinds'
import { keptGateway, keptGrant, keptRoute } from '@thv/catalog/cluster/kept-objects'
import { KindWatch } from '@thv/catalog/cluster/kind-watch'
import type { Clock } from '@thv/kernel/clock'
import type { KubeClient, KubeObject, ObjectEvent } from '@thv/kube'
import type { Logger } from '@thv/telemetry/log'

export const GATEWAY_KINDS = ['HTTPRoute', 'Gateway', 'ReferenceGrant'] as const
export type GatewayKind = (typeof GATEWAY_KINDS)[number]

export interface GatewayWatchesOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  /** Undefined: all. */
  readonly namespaces: readonly string[] | undefined
  readonly onEvent: (kind: GatewayKind, event: ObjectEvent) => void
  readonly onState: () => void
}

const KINDS: Readonly<Record<GatewayKind, { versions: KindVersions; keep: (object: KubeObject) => KubeObject }>> = {
  HTTPRoute: { versions: httpRoutes, keep: keptRoute },
  Gateway: { versions: gateways, keep: keptGateway },
  ReferenceGrant: { versions: referenceGrants, keep: keptGrant },
}

const CHECK_MS = 300_000
const PROBE_MS = 30_000

/** The kinds of the Gateway API, which the cluster may not have, may get later and may lose: see KindWatch for why they are not in the shared caches. */
export class GatewayWatches {
  readonly #stopped = new AbortController()
  readonly #watches: readonly { readonly kind: GatewayKind; readonly watch: KindWatch }[]
  readonly #ends: readonly Promise<void>[]
  #changes = 0

  constructor(options: GatewayWatchesOptions) {
    const { client, clock, random, log, onEvent, onState } = options
    const scopes = options.namespaces ?? [undefined]
    this.#watches = scopes.flatMap((namespace) =>
      GATEWAY_KINDS.map((kind) => {
        const { versions, keep } = KINDS[kind]
        const watch: KindWatch = new KindWatch({
          client,
          clock,
          random,
          kind: versions,
          namespace,
          keep,
          checkMs: CHECK_MS,
          probeMs: PROBE_MS,
          onEvent: (event) => onEvent(kind, event),
          onState: () => {
            this.#changes++
            log.info('a kind of the Gateway API changed', { kind, namespace, state: watch.state })
            onState()
          },
        })
        return { kind, watch }
      }),
    )
    this.#ends = this.#watches.map(({ watch }) => watch.run(this.#stopped.signal))
  }

  /** Times that a kind came, went, or lost or got its rights, the first sight of each included. */
  get changes(): number {
    return this.#changes
  }

  get isReady(): boolean {
    return this.#watches.every(({ watch }) => watch.state !== 'starting')
  }

  /** Why a kind may not be read; empty when all may. */
  get problems(): readonly string[] {
    return [...new Set(this.#watches.flatMap(({ watch }) => (watch.state === 'forbidden' ? [watch.problem] : [])))]
  }

  async close(): Promise<void> {
    this.#stopped.abort()
    await Promise.all(this.#ends)
  }
}
