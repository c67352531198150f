import type { BackoffOptions } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import { type KubeClient, pods } from '@thv/kube'
import type { Platform } from '@thv/kube/objects/pod-security'
import type { ProgramLog } from '@thv/programs/program-log'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Runtime } from '../runtime.ts'
import { runtimeError } from '../runtime-errors.ts'
import type { AttachPort } from './attach-port.ts'
import { desiredObjects, workloadNames } from './desired-objects.ts'
import { createOwnerEvents } from './owner-events.ts'
import { createStdioAttacher, type PodLeases, type StdioAttacher } from './stdio-attacher.ts'
import { keepWorkload, type WorkloadKeeper } from './workload-keeper.ts'

export interface KubernetesRuntimeOptions {
  readonly config: RunConfig
  /** Stays the caller's: `close` of the runtime does not close it. */
  readonly client: KubeClient
  readonly namespace: string
  readonly platform?: Platform
  /** Name of the runner's own pod. */
  readonly instance?: string
  /** Needed for stdio. */
  readonly attach?: AttachPort
  /** Where several runners share the pods of a stdio server. */
  readonly leases?: PodLeases | undefined
  /** From then on no other process is attached to: the next one belongs to the runner that follows. */
  readonly stopping?: AbortSignal | undefined
  readonly log: ProgramLog
  readonly clock?: Clock
  readonly recreateDelayMs?: number
  readonly watchBackoff?: BackoffOptions
  readonly attachBackoff?: BackoffOptions
}

/**
 * Runs the MCP server as a StatefulSet. Throws `runtime_unsuitable` at once for a config that cannot exist in a cluster, and
 * `attach_unavailable` for a stdio server without a way to attach.
 */
export function createKubernetesRuntime(options: KubernetesRuntimeOptions): Runtime {
  const { config, client, namespace, attach, log, clock = systemClock } = options
  const desired = desiredObjects(config, { namespace, platform: options.platform ?? 'kubernetes' })
  if (config.transport === 'stdio' && attach === undefined) {
    throw runtimeError('attach_unavailable', 'transport: stdio servers in a cluster need attach, which this runner does not have yet')
  }
  const capacity = Math.max(1, config.scaling_config.backend_replicas ?? 1)
  const closing = new AbortController()
  let keeper: WorkloadKeeper | undefined
  let attacher: StdioAttacher | undefined
  const events = createOwnerEvents({
    ...{ config, namespace, client, clock, log },
    instance: options.instance ?? config.name,
    pods: () => keeper?.pods ?? [],
  })

  /** One per runtime, for as long as it lives or, for the first who asks, as long as that signal lets it. */
  function workload(signal?: AbortSignal): WorkloadKeeper {
    closing.signal.throwIfAborted()
    keeper ??= keepWorkload(
      {
        config,
        namespace,
        desired,
        client,
        log,
        clock,
        ...(options.recreateDelayMs !== undefined && { recreateDelayMs: options.recreateDelayMs }),
        ...(options.watchBackoff && { watchBackoff: options.watchBackoff }),
      },
      linkSignals(closing.signal, signal),
    )
    return keeper
  }

  return {
    name: 'kubernetes',
    stdioCapacity: Math.min(capacity, config.scaling_config.pods_per_runner ?? capacity),
    get problem() {
      return keeper?.problem
    },
    report: (problem) => events.report(problem),

    async startServer(signal) {
      const running = workload(signal)
      return {
        url: new URL(`http://${workloadNames(config).service}:${config.target_port}`),
        get state() {
          return running.state
        },
        onChange: (listener) => running.onChange(listener),
      }
    },

    async openStdio(signal) {
      if (attach === undefined) throw runtimeError('attach_unavailable', `transport: ${config.transport} servers are not attached to`)
      const running = workload()
      attacher ??= createStdioAttacher({
        namespace,
        port: attach,
        workload: attachable(
          running,
          Array.from({ length: capacity }, (_, index) => `${workloadNames(config).statefulSet}-${index}`),
        ),
        log,
        clock,
        leases: options.leases,
        replacePod: async ({ metadata: { name, uid } }) => {
          await client.delete(pods, { namespace, name }, { preconditions: { uid }, signal: closing.signal })
        },
        ...(options.attachBackoff && { backoff: options.attachBackoff }),
      })
      return await attacher.open(linkSignals(signal, closing.signal, options.stopping))
    },

    async close() {
      closing.abort(new ThvError('aborted', 'the runtime is closed'))
      await attacher?.close()
      await keeper?.done
      await events.flush(AbortSignal.timeout(FLUSH_MS))
    },
  }
}

/** Time limit for writing the Events that were recorded last. */
const FLUSH_MS = 1_000

/** The pods that the Role of a runner lets it attach to: somebody may have scaled the StatefulSet up by hand. */
function attachable(keeper: WorkloadKeeper, names: readonly string[]): Pick<WorkloadKeeper, 'pods' | 'onChange'> {
  return {
    get pods() {
      return keeper.pods.filter(({ metadata }) => names.includes(metadata.name))
    },
    onChange: (listener) => keeper.onChange(listener),
  }
}
