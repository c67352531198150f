import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { type ConfigMap, configMaps, createSharedCaches, type ReflectorClient, type Secret, type SharedCaches, secrets } from '@thv/kube'
import { mcpExternalAuthConfigType, mcpRemoteProxyType, mcpServerEntryType, mcpServerType } from '@thv/resources/kinds/resource-types'
import type { Log } from '@thv/telemetry/log'
import type { ResolvedMember, SecretKey } from '@thv/vmcpconfig/discovery/member-backend'
import { resolveMembers } from '@thv/vmcpconfig/discovery/resolve-member'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { type Discovered, discoveredBackends } from './discovered-backends.ts'
import type { Env } from './forwarded-headers.ts'
import { NamedObjects } from './named-objects.ts'

export interface GroupWatchOptions {
  readonly client: ReflectorClient
  readonly namespace: string
  readonly env: Env
  readonly clock: Clock
  readonly log: Log
  /** A ConfigMap that is watched beside those of members. */
  readonly configMap?: string | undefined
  /** The backends may be others now. */
  onChange(): void
}

/** Changes come in bursts. */
const DEBOUNCE_MS = 50
/** How long the first result waits for Secrets and CA bundles of members. Rights on one of them may never come. */
const FIRST_VALUES_MS = 5_000

/**
 * Follows the members of a group: their resources, authentication, Secrets and CA bundles. While the API server is away the last state stays; broken
 * watches are opened again with back-off and jitter, and a fresh list finds what they missed.
 */
export class GroupWatch {
  readonly #options: GroupWatchOptions
  readonly #caches: SharedCaches
  readonly #closing = new AbortController()
  readonly #secrets: NamedObjects<Secret>
  readonly #configMaps: NamedObjects<ConfigMap>
  #isPending = false
  /** Whether the first result may still wait for values. */
  #awaitsValues: 'not yet' | 'yes' | 'over' = 'not yet'

  constructor(options: GroupWatchOptions) {
    const { client, namespace, clock, log } = options
    this.#options = options
    const onError = (error: unknown, cache: string) => log.warn('watch failed; retrying', { cache, error: errorMessage(error) })
    this.#caches = createSharedCaches(client, { clock, onError: (error, { cache }) => onError(error, cache) })
    const named = { client, namespace, clock, signal: this.#closing.signal, onChange: () => this.#changed(), onError }
    this.#secrets = new NamedObjects<Secret>({ ...named, type: secrets })
    this.#configMaps = new NamedObjects<ConfigMap>({ ...named, type: configMaps })
    const changed = () => this.#changed()
    this.#caches.of(mcpServerType, { namespace }).addHandler(changed)
    this.#caches.of(mcpRemoteProxyType, { namespace }).addHandler(changed)
    this.#caches.of(mcpServerEntryType, { namespace }).addHandler(changed)
    this.#caches.of(mcpExternalAuthConfigType, { namespace }).addHandler(changed)
    if (options.configMap !== undefined) this.#configMaps.want(new Set([options.configMap]))
    void this.#caches.waitForSync().then(
      () => this.#changed(),
      () => undefined, // closed before the first list
    )
  }

  /** Everything has been listed once. */
  get hasSynced(): boolean {
    return this.#caches.all.every(({ hasSynced }) => hasSynced)
  }

  /** A value of the ConfigMap that is watched on its own. */
  configValue(key: string): string | undefined | 'unknown' {
    return this.#options.configMap === undefined ? undefined : this.#configMapValue({ name: this.#options.configMap, key })
  }

  /** The backends as they are now. Undefined until everything has been listed once, and the values that members name have been read. */
  resolve(config: VmcpConfig): Discovered | undefined {
    if (!this.hasSynced) return undefined
    const { env } = this.#options
    const members = this.#members(config)
    this.#follow(members)
    let isMissing = false
    const known = (value: string | undefined) => {
      isMissing ||= value === 'unknown'
      return value
    }
    const values = {
      secret: (key: SecretKey) => known(this.#secretValue(key)),
      configMap: (key: SecretKey) => known(this.#configMapValue(key)),
    }
    const discovered = discoveredBackends(members, { config, env, values })
    if (isMissing && this.#mayWait()) return undefined
    this.#awaitsValues = 'over'
    return discovered
  }

  async waitForSync(signal: AbortSignal): Promise<void> {
    await this.#caches.waitForSync(signal)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#caches.close()
  }

  #mayWait(): boolean {
    if (this.#awaitsValues === 'not yet') {
      this.#awaitsValues = 'yes'
      this.#options.clock.setTimer(FIRST_VALUES_MS, () => {
        if (this.#awaitsValues === 'yes') this.#awaitsValues = 'over'
        this.#changed()
      })
    }
    return this.#awaitsValues === 'yes'
  }

  #members({ groupRef: group, incomingAuth: incoming }: VmcpConfig): readonly ResolvedMember[] {
    const { namespace, env } = this.#options
    const scope = { namespace }
    const auths = this.#caches.of(mcpExternalAuthConfigType, scope).store
    return resolveMembers(
      {
        MCPServer: this.#caches.of(mcpServerType, scope).store.list(),
        MCPRemoteProxy: this.#caches.of(mcpRemoteProxyType, scope).store.list(),
        MCPServerEntry: this.#caches.of(mcpServerEntryType, scope).store.list(),
      },
      {
        ...{ group, namespace, incoming, clusterDomain: env['CLUSTER_DOMAIN'] || 'cluster.local' },
        // From outside of the cluster the names of Services lead nowhere.
        proxyAddress: env['VMCP_NAMESPACE'] ? 'service' : 'status',
        externalAuthConfig: (name) => auths.get({ namespace, name }),
      },
    )
  }

  #follow(members: readonly ResolvedMember[]): void {
    const { configMap } = this.#options
    const found = members.flatMap((each) => (each.ok ? [each.member] : []))
    this.#secrets.want(new Set(found.flatMap((member) => member.secrets.map(({ secret }) => secret.name))))
    const bundles = found.flatMap(({ caBundle }) => (caBundle === undefined ? [] : [caBundle.name]))
    this.#configMaps.want(new Set([...bundles, ...(configMap === undefined ? [] : [configMap])]))
  }

  #secretValue({ name, key }: SecretKey): string | undefined | 'unknown' {
    const secret = this.#secrets.get(name)
    if (secret === 'unknown') return 'unknown'
    const value = secret?.data?.[key]
    return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
  }

  #configMapValue({ name, key }: SecretKey): string | undefined | 'unknown' {
    const map = this.#configMaps.get(name)
    return map === 'unknown' ? 'unknown' : map?.data?.[key]
  }

  #changed(): void {
    if (this.#isPending || this.#closing.signal.aborted) return
    this.#isPending = true
    this.#options.clock.setTimer(DEBOUNCE_MS, () => {
      this.#isPending = false
      if (!this.#closing.signal.aborted) this.#options.onChange()
    })
  }
}
