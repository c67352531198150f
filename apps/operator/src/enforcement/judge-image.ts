import { isListed } from '@thv/catalog/images/image-hashes'
import type { ConditionUpdate } from '@thv/kube'
import { MCPServerCondition, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { blocked } from '../deployment/contribution.ts'
import { contributes, nothing, type Resolved } from '../proxy/contribution.ts'
import type { ImageList } from './image-lists.ts'

/** On an MCPServer: the only registry that its image is looked for in. */
export const REGISTRY_NAME_LABEL = 'toolhive.stacklok.io/registry-name'

/** A registry in the namespace of an MCPServer. */
export interface RegistryOfNamespace {
  readonly name: string
  readonly enforces: boolean
  /** Undefined: it has not been read yet. Only of those that enforce. */
  readonly list: ImageList | undefined
}

export interface ImageQuestion {
  readonly server: MCPServer
  readonly image: string
  /** By name. */
  readonly registries: readonly RegistryOfNamespace[]
  /** Whether a version of this server runs already. */
  readonly runs: boolean
}

/** Whether registries of the namespace allow the image. Pure. Without a registry that enforces there is nothing to say. */
export function resolveImage({ server, image, registries, runs }: ImageQuestion): Resolved {
  const enforcing = registries.filter(({ enforces }) => enforces)
  if (enforcing.length === 0) return nothing
  const label = server.metadata.labels?.[REGISTRY_NAME_LABEL]
  const named = label === undefined ? undefined : registries.find(({ name }) => name === label)
  if (label !== undefined && named === undefined)
    return refused(`MCPRegistry ${label}, named by the label ${REGISTRY_NAME_LABEL}, does not exist`, runs)
  if (named?.enforces === false)
    return contributes({
      conditions: [told(MCPServerReason.ImageValidationSkipped, `MCPRegistry ${named.name} does not enforce its images`)],
    })
  const asked = named === undefined ? enforcing : [named]
  const known = asked.filter(({ list }) => list !== undefined)
  const listing = known.find(({ list }) => list !== undefined && isListed(image, list.hashes))
  if (listing !== undefined)
    return contributes({ conditions: [told(MCPServerReason.ImageValidationSuccess, `MCPRegistry ${listing.name} lists the image`)] })
  const names = asked.map(({ name }) => name).join(', ')
  if (known.length > 0) return refused(`no MCPRegistry that is enforced here lists the image ${image}: ${names}`, runs)
  const before = validatedBefore(server)
  if (before !== undefined) return contributes({ conditions: [before] })
  const message = `the images of MCPRegistry ${names} are not known yet; the server starts when they are and one of them is this image.${stillRuns(runs)}`
  const type = MCPServerCondition.ImageValidated
  return blocked({ condition: type, status: 'Unknown', reason: MCPServerReason.ImageValidationError, message })
}

function told(reason: string, message: string): ConditionUpdate {
  return { type: MCPServerCondition.ImageValidated, status: 'True', reason, message }
}

function refused(why: string, runs: boolean): Resolved {
  const message = `${why}. List the image in a registry, or use one that is listed.${stillRuns(runs)}`
  return blocked({ condition: MCPServerCondition.ImageValidated, reason: MCPServerReason.ImageValidationFailed, message })
}

function stillRuns(runs: boolean): string {
  return runs ? ' The version from before keeps running.' : ''
}

/** The same spec was allowed before: a new operator knows no list yet, and nothing new starts. */
function validatedBefore({ metadata, status }: MCPServer): ConditionUpdate | undefined {
  const found = status?.conditions?.find(({ type }) => type === MCPServerCondition.ImageValidated)
  if (found?.status !== 'True' || found.observedGeneration !== metadata.generation) return undefined
  return told(found.reason, found.message)
}
