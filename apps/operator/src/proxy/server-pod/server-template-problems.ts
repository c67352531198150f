import { objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'
import { MCPServerAnnotation } from '@thv/resources/kinds/mcp-server/constants'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import { isRecord } from '@thv/resources/schema/normalize'
import { WorkloadAnnotation } from '../../deployment/template/annotations.ts'
import { podTemplateProblems } from '../../deployment/template/pod-template-spec.ts'
import { TEMPLATE_PATH, type TemplateProblem } from '../../deployment/template/template-problem.ts'
import { serverLabels, serverSelector } from '../labels.ts'

/** The container that runs the MCP server; others in the template are sidecars. */
export const MCP_CONTAINER = 'mcp'

type Spec = Pick<CanonicalMCPServerSpec, 'image' | 'transport' | 'args' | 'volumes'>

/** Problems of the `podTemplateSpec` of an MCPServer: fields that the API server would reject, and fields that are set elsewhere. */
export function mcpTemplateProblems(template: UnknownObject, spec: Spec): TemplateProblem[] {
  const problems = podTemplateProblems(complete(template, spec))
  // The types must be right before anybody looks inside.
  return problems.length > 0 ? problems : notSaidHere(template, spec)
}

/** With what is added and the rules ask for. Appended, so that the paths of the user stay as they are. */
function complete(template: UnknownObject, { image, volumes }: Spec): UnknownObject {
  const spec = template['spec'] ?? {}
  if (!isRecord(spec) || (spec['containers'] !== undefined && !Array.isArray(spec['containers']))) return template
  const containers: readonly unknown[] = spec['containers'] ?? []
  const isMcp = (container: unknown): container is UnknownObject => isRecord(container) && container['name'] === MCP_CONTAINER
  const withImage = containers.map((container) => (isMcp(container) ? { image, ...container } : container))
  return {
    ...template,
    spec: {
      ...spec,
      ...withFolders(spec['volumes'] ?? [], volumes),
      containers: containers.some(isMcp) ? withImage : [...withImage, { name: MCP_CONTAINER, image }],
    },
  }
}

/** Only for their names: `volumeProblems` reports their problems. */
function withFolders(given: unknown, volumes: Spec['volumes']): UnknownObject {
  if (volumes.length === 0 || !Array.isArray(given)) return {}
  const isGiven = (name: string) => given.some((volume) => isRecord(volume) && volume['name'] === name)
  const own = volumes.filter(({ name }) => !isGiven(name)).map(({ name }) => ({ name, emptyDir: {} }))
  return { volumes: [...given, ...own] }
}

const OWN_LABELS = Object.keys({ ...serverLabels({ name: '', transport: '', proxyPort: 0 }), ...serverSelector('') })
const OWN_ANNOTATIONS: readonly string[] = [...Object.values(WorkloadAnnotation), MCPServerAnnotation.restartedAt]
/** Volumes that the runner makes itself begin with this. */
const OWN_VOLUME = 'thv-'

function notSaidHere(template: UnknownObject, { transport, args }: Spec): TemplateProblem[] {
  const problems: TemplateProblem[] = []
  const report = (path: string, message: string) => void problems.push({ path: `${TEMPLATE_PATH}.${path}`, message })
  const [metadata, podSpec] = [objectAt(template, 'metadata'), objectAt(template, 'spec')]

  for (const key of Object.keys(objectAt(metadata, 'labels'))) {
    if (OWN_LABELS.includes(key)) report(`metadata.labels[${key}]`, 'is set by the operator: choose another label')
  }
  for (const key of Object.keys(objectAt(metadata, 'annotations'))) {
    if (OWN_ANNOTATIONS.includes(key)) report(`metadata.annotations[${key}]`, 'is set by the operator: leave it out')
  }
  for (const field of ['serviceAccountName', 'serviceAccount']) {
    if (podSpec[field]) report(`spec.${field}`, 'cannot be set here: use spec.serviceAccount')
  }
  objectsAt(podSpec, 'volumes').forEach(({ name }, index) => {
    if (String(name).startsWith(OWN_VOLUME)) report(`spec.volumes[${index}].name`, `must not begin with ${OWN_VOLUME}: choose another name`)
  })
  objectsAt(podSpec, 'initContainers').forEach(({ name }, index) => {
    if (name === MCP_CONTAINER) report(`spec.initContainers[${index}].name`, `must not be ${MCP_CONTAINER}: that is the MCP server itself`)
  })
  objectsAt(podSpec, 'containers').forEach((container, index) => {
    if (container['name'] !== MCP_CONTAINER) return
    const at = `spec.containers[${index}]`
    if (container['image'] !== undefined) report(`${at}.image`, 'cannot be set here: use spec.image')
    if (container['args'] !== undefined && args.length > 0) report(`${at}.args`, 'cannot be set here, because spec.args is set')
    if (container['stdin'] !== undefined && container['stdin'] !== (transport === 'stdio')) {
      report(`${at}.stdin`, `follows from spec.transport, which is ${transport}: leave it out`)
    }
    for (const field of ['stdinOnce', 'tty']) {
      if (container[field] === true) report(`${at}.${field}`, 'would garble what the server and its proxy say to each other: leave it out')
    }
  })
  return problems
}

/** No two volumes can have one name or be mounted at one place. */
export function volumeProblems(template: UnknownObject, { volumes }: Spec): TemplateProblem[] {
  const container = objectsAt(objectAt(template, 'spec'), 'containers').find(({ name }) => name === MCP_CONTAINER)
  const taken = new Set(objectsAt(container ?? {}, 'volumeMounts').map(({ mountPath }) => placeOf(String(mountPath))))
  const names = new Set(objectsAt(objectAt(template, 'spec'), 'volumes').map(({ name }) => String(name)))
  return volumes.flatMap(({ name, hostPath, mountPath }, index) => {
    const at = `spec.volumes[${index}]`
    const nameProblem = volumeNameProblem(name, names)
    names.add(name)
    const place = placeOf(mountPath)
    const isTaken = taken.has(place)
    taken.add(place)
    return [
      ...(nameProblem === undefined ? [] : [{ path: `${at}.name`, message: nameProblem }]),
      ...(isFolder(hostPath) ? [] : [{ path: `${at}.hostPath`, message: 'expects an absolute path without colon and without ..' }]),
      ...(isFolder(mountPath) ? [] : [{ path: `${at}.mountPath`, message: 'expects an absolute path without colon and without ..' }]),
      ...(isTaken ? [{ path: `${at}.mountPath`, message: 'is where another volume is mounted: choose another path' }] : []),
    ]
  })
}

function volumeNameProblem(name: string, taken: ReadonlySet<string>): string | undefined {
  if (name.startsWith(OWN_VOLUME)) return `must not begin with ${OWN_VOLUME}: choose another name`
  return taken.has(name) ? 'is the name of another volume: choose another one' : undefined
}

function isFolder(path: string): boolean {
  return path.startsWith('/') && !path.includes(':') && !path.includes('\0') && !path.split('/').includes('..')
}

function placeOf(path: string): string {
  return path.replace(/\/+$/, '')
}
