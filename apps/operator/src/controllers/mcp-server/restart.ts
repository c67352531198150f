import type { Deployment, Pod } from '@thv/kube'
import { MCPServerAnnotation } from '@thv/resources/kinds/mcp-server/constants'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'

/** The restart that the user asks for, as written; undefined when nothing is asked or it is no time. */
export function restartTime({ metadata }: Pick<MCPServer, 'metadata'>): string | undefined {
  const text = metadata.annotations?.[MCPServerAnnotation.restartedAt]
  return text !== undefined && RFC3339.test(text) && !Number.isNaN(Date.parse(text)) ? text : undefined
}

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/**
 * `immediate`: proxy pods that were made before the restart was asked for and are to go at once, not one by one. The annotation is copied
 * into the template, so a pod without it is an old one; until the template has it, the pods that replaced them would be old as well.
 * Once for each restart: the old ReplicaSet makes old pods again until the new ones are ready, and chasing those would never end.
 */
export function podsToRestartNow(server: Pick<MCPServer, 'metadata'>, deployment: Deployment | undefined, pods: readonly Pod[]): Pod[] {
  const time = restartTime(server)
  if (time === undefined || server.metadata.annotations?.[MCPServerAnnotation.restartStrategy] !== 'immediate') return []
  if (server.metadata.annotations[MCPServerAnnotation.lastProcessedRestart] === time) return []
  const isNew = (annotations: Readonly<Record<string, string>> | undefined) => annotations?.[MCPServerAnnotation.restartedAt] === time
  if (!isNew(deployment?.spec?.template?.metadata?.annotations)) return []
  return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined && !isNew(metadata.annotations))
}
