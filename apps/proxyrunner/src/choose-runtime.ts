import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Logger } from '@thv/telemetry/log'
import { type Env, isInCluster } from './runner-settings.ts'
import type { Runtime } from './runtime/runtime.ts'

export const RUNTIME_CHOICES = ['auto', 'kubernetes', 'local'] as const
export type RuntimeChoice = (typeof RUNTIME_CHOICES)[number]

export interface RuntimeDeps {
  readonly config: RunConfig
  readonly env: Env
  readonly log: Logger
  readonly clock: Clock
}

/** Only the one that is used gets loaded. Throws when it cannot run this config at all. */
export async function chooseRuntime(choice: RuntimeChoice, deps: RuntimeDeps): Promise<Runtime> {
  const isLocal = choice === 'auto' ? !isInCluster(deps.env) : choice === 'local'
  return await (isLocal ? localRuntime(deps) : kubernetesRuntime(deps))
}

async function localRuntime(deps: RuntimeDeps): Promise<Runtime> {
  const { createLocalRuntime } = await import('./runtime/local/local-runtime.ts')
  return createLocalRuntime(deps)
}

async function kubernetesRuntime({ config, env, log, clock }: RuntimeDeps): Promise<Runtime> {
  const [{ createKubeClient, defaultConnection }, { createKubernetesRuntime }, { detectPlatform, resolveNamespace }] = await Promise.all([
    import('@thv/kube'),
    import('./runtime/kubernetes/kubernetes-runtime.ts'),
    import('./runtime/kubernetes/cluster-place.ts'),
  ])
  const connection = await defaultConnection({ env, clock })
  const client = createKubeClient(connection)
  const namespace = await resolveNamespace({ env, connection })
  const platform = await detectPlatform(client, env, (error) =>
    log.warn('the cluster does not say whether it is OpenShift; it is taken for plain Kubernetes', { error: errorMessage(error) }),
  )
  const runtime = createKubernetesRuntime({ config, client, namespace, platform, log, clock })
  return {
    ...runtime,
    async close() {
      await runtime.close()
      await client.close()
    },
  }
}
