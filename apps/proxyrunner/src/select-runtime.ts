import { hostname } from 'node:os'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { Connection } from '@thv/kube'
import type { ProgramLog } from '@thv/programs/program-log'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { AttachPort } from './runtime/kubernetes/attach-port.ts'
import type { PodLeases } from './runtime/kubernetes/stdio-attacher.ts'
import type { Runtime } from './runtime/runtime.ts'

export const RUNTIME_CHOICES = ['auto', 'kubernetes', 'local'] as const
export type RuntimeChoice = (typeof RUNTIME_CHOICES)[number]

type Env = Readonly<Record<string, string | undefined>>

/** The runtime that --runtime selects. `auto`: TOOLHIVE_RUNTIME, else whether this is a pod. Throws `usage` for what is neither. */
export function chooseRuntime(choice: string, env: Env): 'kubernetes' | 'local' {
  if (choice === 'kubernetes' || choice === 'local') return choice
  if (choice !== 'auto') throw new ThvError('usage', `--runtime expects one of ${RUNTIME_CHOICES.join(', ')}`)
  const told = env['TOOLHIVE_RUNTIME']
  if (told === 'kubernetes' || told === 'local') return told
  if (told) throw new ThvError('usage', 'TOOLHIVE_RUNTIME expects one of kubernetes, local')
  return env['KUBERNETES_SERVICE_HOST'] ? 'kubernetes' : 'local'
}

export interface CreateRuntimeOptions {
  readonly runtime: RuntimeChoice
  readonly config: RunConfig
  readonly log: ProgramLog
  readonly env?: Env
  /** Where local packages are installed. */
  readonly dataDir?: string
  /** From --kubeconfig. */
  readonly kubeconfig?: string
  /** How to attach to pods, made from the way to the API server. Default: `createPodAttach`. */
  readonly attach?: (connection: Connection) => AttachPort
  readonly clock?: Clock
  /** Aborts when the program begins to stop; connections that are open stay. */
  readonly stopping?: AbortSignal
  /** For several runners of one stdio server: leases on its pods for the holder of that name. */
  readonly leases?: ((owner: string) => PodLeases) | undefined
}

/** Makes the runtime for a server that we run ourselves. What the other one needs is not loaded. */
export async function createRuntime(options: CreateRuntimeOptions): Promise<Runtime> {
  const { config, env = process.env } = options
  if (config.remote_url !== undefined) throw new RangeError('a server at remote_url needs no runtime')
  return chooseRuntime(options.runtime, env) === 'local' ? await localRuntime(options) : await kubernetesRuntime(options)
}

async function localRuntime({ config, log, env = process.env, dataDir, clock }: CreateRuntimeOptions): Promise<Runtime> {
  const { createLocalRuntime } = await import('./runtime/local/local-runtime.ts')
  return createLocalRuntime({ config, log, env, ...(dataDir !== undefined && { dataDir }), ...(clock && { clock }) })
}

async function kubernetesRuntime(options: CreateRuntimeOptions): Promise<Runtime> {
  const { config, log, env = process.env, kubeconfig, clock } = options
  const { createKubeClient, defaultConnection } = await import('@thv/kube')
  const { createKubernetesRuntime } = await import('./runtime/kubernetes/kubernetes-runtime.ts')
  const { detectPlatform, resolveNamespace } = await import('./runtime/kubernetes/cluster-place.ts')

  const connection = await defaultConnection({ env, kubeconfig, ...(clock && { clock }) })
  const client = createKubeClient(connection, {
    userAgent: 'thv-proxyrunner',
    onWarning: (text) => log.warn('warning of the API server', { text }),
    ...(clock && { clock }),
  })
  try {
    const namespace = await resolveNamespace({ env, connection })
    const platform = await detectPlatform(client, env, (error) =>
      log.warn('cannot tell OpenShift from Kubernetes', { error: String(error) }),
    )
    const instance = env['POD_NAME'] || hostname()
    const runtime = createKubernetesRuntime({
      config,
      client,
      namespace,
      platform,
      instance,
      log,
      leases: options.leases?.(instance),
      stopping: options.stopping,
      ...(config.transport === 'stdio' && { attach: await attachPort(connection, options) }),
      ...(clock && { clock }),
    })
    return {
      ...runtime,
      get problem() {
        return runtime.problem
      },
      async close() {
        await runtime.close()
        await client.close()
      },
    }
  } catch (error) {
    await client.close()
    throw error
  }
}

/** WebSockets are loaded for stdio servers only. */
async function attachPort(connection: Connection, { attach, clock }: CreateRuntimeOptions): Promise<AttachPort> {
  if (attach !== undefined) return attach(connection)
  const { createPodAttach } = await import('./runtime/kubernetes/pod-attach.ts')
  return createPodAttach(connection, clock ? { clock } : {})
}
