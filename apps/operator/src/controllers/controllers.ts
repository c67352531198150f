import { errorMessage } from '@thv/kernel/errors'
import { type Controller, createController, done, formatKey, KubeApiError, type Outcome, type ReconcileReport } from '@thv/kube'
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
  return CONTROLLERS.map(({ name, reconcile, sources, concurrency }) =>
    createController({
      name,
      reconcile: (key, context) => reconcile(key, env, context).catch(unlessNamespaceGoes),
      sources: sources(env.caches),
      concurrency,
      drainMs,
      clock: env.clock,
      queue: { backoff: { baseMs: 100, maxMs: 300_000 } },
      onReconcile: (report) => onReconcile?.(name, report),
      onError: (error, key) =>
        env.log.warn('a reconcile failed; trying again', { controller: name, object: key && formatKey(key), error: errorMessage(error) }),
    }),
  )
}

/** Nothing can be created in a namespace that is being deleted, and nothing needs to be. */
function unlessNamespaceGoes(error: unknown): Outcome {
  if (error instanceof KubeApiError && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')) return done
  throw error
}
