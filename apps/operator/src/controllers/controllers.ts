import { errorMessage } from '@thv/kernel/errors'
import {
  type Controller,
  createController,
  done,
  formatKey,
  KubeApiError,
  type ObjectKey,
  type Outcome,
  type ReconcileContext,
  type ReconcileReport,
  refusedWrite,
} from '@thv/kube'
import { OPERATOR, tellRefusedWrite } from '../deployment/status/refused-write.ts'
import type { Env } from '../environment.ts'
import type { ControllerSpec } from './controller-spec.ts'
import { controller as mcpExternalAuthConfig } from './mcp-external-auth-config/controller.ts'
import { controller as mcpGroup } from './mcp-group/controller.ts'
import { controller as mcpRegistry } from './mcp-registry/controller.ts'
import { controller as mcpRemoteProxy } from './mcp-remote-proxy/controller.ts'
import { controller as mcpServer } from './mcp-server/controller.ts'
import { controller as mcpServerEntry } from './mcp-server-entry/controller.ts'
import { controller as mcpToolConfig } from './mcp-tool-config/controller.ts'
import { controller as virtualMcpCompositeToolDefinition } from './virtual-mcp-composite-tool-definition/controller.ts'
import { controller as virtualMcpServer } from './virtual-mcp-server/controller.ts'

/** A new kind adds a line here; all else lies in its folder. */
export const CONTROLLERS: readonly ControllerSpec[] = [
  mcpServer,
  mcpRemoteProxy,
  mcpGroup,
  mcpToolConfig,
  mcpExternalAuthConfig,
  mcpServerEntry,
  mcpRegistry,
  virtualMcpServer,
  virtualMcpCompositeToolDefinition,
]

export interface ControllersOptions {
  readonly drainMs: number
  readonly onReconcile?: (controller: string, report: ReconcileReport) => void
}

export function createControllers(env: Env, { drainMs, onReconcile }: ControllersOptions): Controller[] {
  return CONTROLLERS.map((spec) => {
    const { name, sources, concurrency } = spec
    return createController({
      name,
      reconcile: (key, context) => reconcileOne(spec, env, { key, context }),
      sources: sources(env.caches),
      concurrency,
      drainMs,
      clock: env.clock,
      queue: { backoff: { baseMs: 100, maxMs: 300_000 } },
      onReconcile: (report) => onReconcile?.(name, report),
      onError: (error, key) =>
        env.log.warn('a reconcile failed; trying again', { controller: name, object: key && formatKey(key), error: errorMessage(error) }),
    })
  })
}

/** Refused so often in a row, a write is reported: the first time the cache may have been behind. */
const REFUSALS = 2

/** A write that the API server keeps refusing shows in the status, whatever object it is about, and is tried again. */
export async function reconcileOne(
  spec: ControllerSpec,
  env: Env,
  { key, context }: { readonly key: ObjectKey; readonly context: ReconcileContext },
): Promise<Outcome> {
  try {
    return await spec.reconcile(key, env, context)
  } catch (error) {
    if (isNamespaceGoing(error)) return done
    const { cache, refusedIn: condition } = spec
    const message = context.attempt < REFUSALS ? undefined : refusedWrite(error, OPERATOR)
    const object = env.caches.of(cache).get(key)
    if (message !== undefined && condition !== undefined && object !== undefined) {
      const serving = spec.serving?.(object, env)
      const report = { type: cache.type, condition, message, serving, env, signal: context.signal }
      await tellRefusedWrite(object, report).catch((failure: unknown) =>
        env.log.warn('a refused write could not be reported', { object: formatKey(key), error: errorMessage(failure) }),
      )
    }
    throw error
  }
}

/** Nothing can be created in a namespace that is being deleted, and nothing needs to be. */
function isNamespaceGoing(error: unknown): boolean {
  return error instanceof KubeApiError && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}
