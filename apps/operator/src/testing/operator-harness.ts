import { createLifecycle, type Lifecycle } from '@thv/kernel/lifecycle'
import { bearerToken, createKubeClient, type KubeClient } from '@thv/kube'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { createLogger } from '@thv/telemetry/log'
import { createMetrics } from '@thv/telemetry/metrics'
import { type ClusterAccess, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { createManager, type Manager, type ManagerOptions } from '../manager.ts'
import { type OperatorFlags, type OperatorSettings, operatorSettings } from '../operator-settings.ts'
import { operatorAccount } from './operator-account.ts'

export interface OperatorUnderTest {
  readonly namespace: string
  /** With every right: what a test does. */
  readonly admin: KubeClient
  readonly manager: Manager
  readonly settings: OperatorSettings
  /** Whether controllers of Deployments and a scheduler run beside the API server. */
  readonly hasControllers: boolean
  /** Calls of the operator by verb, watches and lists left out. */
  readonly calls: CallLog
  /** Plurals of what the operator listed, in order; that is, mostly, what its caches did. */
  readonly lists: readonly string[]
  /** Reconciles in their order, as `CONTROLLER NAME`. */
  readonly reconciled: string[]
  /** Lines of the operator's log. */
  readonly log: readonly string[]
  stop(): Promise<void>
}

export interface CallLog {
  readonly all: readonly Call[]
  /** Those that change something; Events are no part of a resource. */
  readonly writes: readonly Call[]
  clear(): void
}

export interface Call {
  readonly verb: string
  readonly plural: string
  readonly name: string
  readonly subresource?: string
}

type BeforeCall = (call: Call, sent: unknown) => void

export interface HarnessOptions {
  readonly namespace?: string
  readonly cluster?: ClusterAccess
  readonly flags?: Partial<OperatorFlags>
  readonly env?: Readonly<Record<string, string>>
  readonly openshift?: boolean
  readonly settings?: Partial<OperatorSettings>
  /** Of an account with other rights than those of the plain manifests. */
  readonly token?: string
  /** Runs before each call of the operator, with what it sends; the call fails with what it throws. */
  readonly beforeCall?: BeforeCall
  /** Of an account that may not list everything: returns before the caches are filled. */
  readonly waitsForCaches?: boolean
  /** The default, a second, is longer than most changes take. */
  readonly exportDebounceMs?: number
}

const FLAGS: OperatorFlags = {
  metricsBindAddress: '0',
  healthProbeBindAddress: '0',
  webhookBindAddress: '0',
  leaderElect: false,
  leaseDuration: 2_000,
  denyPrivateRemotes: false,
  allowLoopbackRemotes: false,
}

/** Runs the operator in this process, for one namespace, with the rights that the chart gives it and no others. */
export async function startOperator(options: HarnessOptions = {}): Promise<OperatorUnderTest> {
  const cluster = options.cluster ?? sharedCluster()
  const admin = adminClient(cluster)
  await installCrds(admin)
  const namespace = options.namespace ?? (await testNamespace('operator', cluster))
  const env = { WATCH_NAMESPACE: namespace, POD_NAMESPACE: namespace, POD_NAME: 'operator-under-test', ...options.env }
  const settings = {
    ...operatorSettings({ ...FLAGS, ...options.flags }, env, { openshift: options.openshift ?? false }),
    runnerImage: 'toolhive-test:1',
    registryImage: 'toolhive-test:1',
    vmcpImage: 'toolhive-test:1',
    ...options.settings,
  }
  const token = options.token ?? (await operatorAccount(admin, { namespace, watched: settings.watchNamespaces }))
  const calls: Call[] = []
  const lists: string[] = []
  const own = createKubeClient({ server: cluster.url, tls: { ca: cluster.caPem }, auth: bearerToken(token) })
  const lines: string[] = []
  const log = createLogger({ level: 'debug', format: 'json', write: (line) => lines.push(line) })
  const reconciled: string[] = []
  const onReconcile: ManagerOptions['onReconcile'] = (controller, { key }) => reconciled.push(`${controller} ${key.name}`)
  const manager = createManager({
    client: counting(own, { calls, lists }, options.beforeCall),
    settings,
    metrics: createMetrics(),
    log,
    onReconcile,
    ...(options.exportDebounceMs !== undefined && { exportDebounceMs: options.exportDebounceMs }),
  })
  const lifecycle: Lifecycle = createLifecycle()
  const running = manager.run(lifecycle)
  running.catch((error: unknown) => lines.push(`the operator failed: ${String(error)}\n`))
  if (options.waitsForCaches !== false) await manager.caches.shared.waitForSync(AbortSignal.timeout(60_000))
  return {
    namespace,
    admin,
    manager,
    settings,
    hasControllers: cluster.form !== 'api-server',
    calls: callLog(calls),
    lists,
    reconciled,
    log: lines,
    async stop() {
      await lifecycle.shutdown('the test is over')
      await running
      await Promise.all([own.close(), admin.close()])
    },
  }
}

/** Waits until `check` gives something, and fails with `what` and the last thing it threw. */
export async function eventually<T>(what: string, check: () => Promise<T | undefined | false>, limitMs = 120_000): Promise<T> {
  const deadline = performance.now() + limitMs
  let last: unknown
  for (;;) {
    try {
      const result = await check()
      if (result !== undefined && result !== false) return result
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`, { cause: last })
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const WRITES = ['create', 'update', 'patch', 'apply', 'delete', 'deleteCollection']
const COUNTED = ['get', 'tryGet', ...WRITES]

function callLog(calls: Call[]): CallLog {
  return {
    get all() {
      return calls
    },
    get writes() {
      return calls.filter(({ verb, plural }) => WRITES.includes(verb) && plural !== 'events')
    },
    clear() {
      calls.length = 0
    },
  }
}

const LISTS = ['list', 'listPages', 'listAll']

function counting(client: KubeClient, { calls, lists }: { calls: Call[]; lists: string[] }, beforeCall: BeforeCall = () => {}): KubeClient {
  return new Proxy(client, {
    get(target, property: keyof KubeClient) {
      const value = target[property] as (...args: unknown[]) => unknown
      if (typeof value !== 'function' || ![...COUNTED, ...LISTS].includes(property)) return value
      return (...args: unknown[]) => {
        if (LISTS.includes(property)) {
          lists.push((args[0] as { plural: string }).plural)
          return value.apply(target, args)
        }
        const [type, second] = args as [{ plural: string }, { name?: string; metadata?: { name: string } }]
        const { subresource } = (args.at(-1) ?? {}) as { subresource?: string }
        const name = second?.name ?? second?.metadata?.name ?? ''
        const call: Call = { verb: property, plural: type.plural, name, ...(subresource !== undefined && { subresource }) }
        calls.push(call)
        beforeCall(call, second)
        return value.apply(target, args)
      }
    },
  })
}
