import { forbidden, invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { textAt } from '../../../objects/served-kind.ts'
import { flagAt, givenText, objectsAt } from './fields.ts'
import { descendingPath, noStepsBack } from './path-checks.ts'
import { notFoundValue, oneOf } from './problems.ts'

/** Of `volumeMounts` and `volumeDevices` of a container. */
export function mountProblems(container: JsonObject, volumes: ReadonlyMap<string, JsonObject>, path: string): FieldProblem[] {
  const mounts = objectsAt(container, 'volumeMounts')
  const devices = objectsAt(container, 'volumeDevices')
  const seen = new Set<string>()
  return [
    ...mounts.flatMap((mount, index) => {
      const field = `${path}.volumeMounts[${index}]`
      const name = textAt(mount, 'name')
      const target = textAt(mount, 'mountPath')
      const problems: FieldProblem[] = []
      if (name === '') problems.push(required(`${field}.name`))
      if (!volumes.has(name)) problems.push(notFoundValue(`${field}.name`, name))
      if (target === '') problems.push(required(`${field}.mountPath`))
      if (seen.has(target)) problems.push(invalid(`${field}.mountPath`, target, 'must be unique'))
      seen.add(target)
      if (devices.some((device) => textAt(device, 'name') === name))
        problems.push(invalid(`${field}.name`, name, 'must not already exist in volumeDevices'))
      if (devices.some((device) => textAt(device, 'devicePath') === target))
        problems.push(invalid(`${field}.mountPath`, target, 'must not already exist as a path in volumeDevices'))
      return [...problems, ...subPathProblems(mount, field), ...modeProblems(container, mount, `${path}.volumeMounts`)]
    }),
    ...deviceProblems({ mounts, devices, volumes }, `${path}.volumeDevices`),
  ]
}

/** The server leaves the number of the mount out of some of its fields. */
function subPathProblems(mount: JsonObject, field: string): FieldProblem[] {
  const list = field.replace(/\[\d+\]$/, '')
  const [sub, expression] = [textAt(mount, 'subPath'), textAt(mount, 'subPathExpr')]
  const problems = sub === '' ? [] : descendingPath(sub, `${list}.subPath`)
  if (expression === '') return problems
  if (sub !== '') problems.push(invalid(`${field}.subPathExpr`, expression, 'subPathExpr and subPath are mutually exclusive'))
  return [...problems, ...descendingPath(expression, `${list}.subPathExpr`)]
}

function modeProblems(container: JsonObject, mount: JsonObject, list: string): FieldProblem[] {
  const propagation = givenText(mount, 'mountPropagation')
  const recursive = givenText(mount, 'recursiveReadOnly')
  const problems = oneOf(`${list}.mountPropagation`, propagation, ['Bidirectional', 'HostToContainer', 'None'])
  if (propagation === 'Bidirectional' && flagAt(container, 'securityContext', 'privileged') !== true)
    problems.push(forbidden(`${list}.mountPropagation`, 'Bidirectional mount propagation is available only to privileged containers'))
  const field = `${list}.recursiveReadOnly`
  problems.push(...oneOf(field, recursive, ['Disabled', 'Enabled', 'IfPossible']))
  if (recursive !== 'Enabled' && recursive !== 'IfPossible') return problems
  if (flagAt(mount, 'readOnly') !== true) problems.push(forbidden(field, 'may only be specified when readOnly is true'))
  if (propagation !== undefined && propagation !== 'None')
    problems.push(forbidden(field, 'may only be specified when mountPropagation is None or not specified'))
  return problems
}

interface Devices {
  readonly mounts: readonly JsonObject[]
  readonly devices: readonly JsonObject[]
  readonly volumes: ReadonlyMap<string, JsonObject>
}

function deviceProblems({ mounts, devices, volumes }: Devices, list: string): FieldProblem[] {
  const names = new Set<string>()
  const paths = new Set<string>()
  return devices.flatMap((device, index) => {
    const [name, path] = [textAt(device, 'name'), textAt(device, 'devicePath')]
    const field = `${list}[${index}]`
    const volume = volumes.get(name)
    const problems: FieldProblem[] = []
    if (name === '') problems.push(required(`${field}.name`))
    if (names.has(name)) problems.push(invalid(`${field}.name`, name, 'must be unique'))
    if (volume === undefined) problems.push(notFoundValue(`${field}.name`, name))
    else if (volume['persistentVolumeClaim'] === undefined && volume['ephemeral'] === undefined)
      problems.push(invalid(`${field}.name`, name, 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'))
    if (path === '') problems.push(required(`${field}.devicePath`))
    if (paths.has(path)) problems.push(invalid(`${field}.devicePath`, path, 'must be unique'))
    if (noStepsBack(path, field).length > 0) problems.push(invalid(`${field}.devicePath`, path, "can not contain backsteps ('..')"))
    else paths.add(path)
    if (mounts.some((mount) => textAt(mount, 'name') === name))
      problems.push(invalid(`${field}.name`, name, 'must not already exist in volumeMounts'))
    if (mounts.some((mount) => textAt(mount, 'mountPath') === path))
      problems.push(invalid(`${field}.devicePath`, path, 'must not already exist as a path in volumeMounts'))
    if (name !== '') names.add(name)
    return problems
  })
}
