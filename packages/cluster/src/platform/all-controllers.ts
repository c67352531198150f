import { createBackoff } from '@thv/kernel/backoff'
import type { ControllerEnv, ControllerFactory } from '../controllers/controller-env.ts'
import { deploymentController } from '../controllers/deployment/deployment-controller.ts'
import { endpointSliceController } from '../controllers/endpoint-slices/endpoint-slice-controller.ts'
import { type EventExpirySettings, eventExpiry } from '../controllers/events-ttl/event-expiry.ts'
import { garbageCollector } from '../controllers/garbage-collector/garbage-collector.ts'
import { namespaceController } from '../controllers/namespaces/namespace-controller.ts'
import { type PodCollectorSettings, podCollector } from '../controllers/pod-gc/pod-collector.ts'
import { replicaSetController, replicationControllerController } from '../controllers/replicaset/replica-set-controller.ts'
import { scheduler } from '../controllers/scheduler/scheduler.ts'
import { type ServiceAccountSettings, serviceAccountController } from '../controllers/service-accounts/service-account-controller.ts'
import { statefulSetController } from '../controllers/statefulset/stateful-set-controller.ts'

export interface ControllerSettings extends ServiceAccountSettings, EventExpirySettings, PodCollectorSettings {}

/** All that a cluster's own controllers do on this platform. */
export function allControllers(settings: ControllerSettings = {}): readonly ControllerFactory[] {
  return [
    deploymentController,
    replicaSetController,
    replicationControllerController,
    statefulSetController,
    scheduler,
    endpointSliceController,
    garbageCollector,
    namespaceController,
    (env) => serviceAccountController(env, settings),
    (env) => eventExpiry(env, settings),
    (env) => podCollector(env, settings),
  ]
}

export interface RunningControllers {
  /** Resolves when the signal has aborted and all have ended. Never rejects. */
  readonly done: Promise<void>
}

/** Resolves when their caches are filled. One that fails is reported and begun again: none takes the others with it. */
export async function startControllers(
  env: ControllerEnv,
  signal: AbortSignal,
  settings?: ControllerSettings,
): Promise<RunningControllers> {
  const running = allControllers(settings).map((factory) => keepRunning(factory, env, signal))
  await env.caches.waitForSync(signal)
  return { done: Promise.all(running).then(() => undefined) }
}

async function keepRunning(factory: ControllerFactory, env: ControllerEnv, signal: AbortSignal): Promise<void> {
  const backoff = createBackoff({ baseMs: 1_000, maxMs: 60_000 })
  while (!signal.aborted) {
    try {
      await factory(env).run(signal)
    } catch (error) {
      env.onError(error)
      await env.clock.sleep(backoff.next(), signal).catch(() => undefined) // aborted: the loop ends
    }
  }
}
