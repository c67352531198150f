import { duplicate, forbidden, invalid, required, tooLong } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { labelNameProblems, subdomainProblems } from '@thv/kube-schema/values/name-checks'
import { quantityOf } from '@thv/kube-schema/values/quantity'
import { textAt } from '../../../objects/served-kind.ts'
import { claimSpecProblems } from './claim-validation.ts'
import { fieldRefProblems, resourceRefProblems, VOLUME_FIELDS } from './downward-validation.ts'
import { givenText, numberAt, objectAt, objectsAt } from './fields.ts'
import { filePath, noStepsBack } from './path-checks.ts'
import { invalidAll, oneOf } from './problems.ts'

export interface CheckedVolumes {
  readonly problems: readonly FieldProblem[]
  /** Those with nothing wrong, by name: what a container can mount. */
  readonly good: ReadonlyMap<string, JsonObject>
}

/** `podName` is empty for a template. */
export function checkVolumes(volumes: readonly JsonObject[], path: string, podName = ''): CheckedVolumes {
  const problems: FieldProblem[] = []
  const good = new Map<string, JsonObject>()
  const made = new Set(podName === '' ? [] : volumes.filter((one) => one['ephemeral']).map((one) => `${podName}-${textAt(one, 'name')}`))
  volumes.forEach((volume, index) => {
    const place = `${path}[${index}]`
    const name = textAt(volume, 'name')
    const found = [
      ...sourceProblems(volume, place),
      ...(name === '' ? [required(`${place}.name`)] : invalidAll(`${place}.name`, name, labelNameProblems(name))),
      ...(good.has(name) ? [duplicate(`${place}.name`, name)] : []),
    ]
    if (found.length === 0) good.set(name, volume)
    problems.push(...found)
    const claim = textAt(volume, 'persistentVolumeClaim', 'claimName')
    if (made.has(claim))
      problems.push(
        invalid(`${place}.persistentVolumeClaim.claimName`, claim, 'must not reference a PVC that gets created for an ephemeral volume'),
      )
  })
  return { problems, good }
}

type Check = (source: JsonObject, path: string) => FieldProblem[]

/** Every kind of volume in the order in which the server looks for them. Those of single vendors are not looked into. */
const SOURCES: readonly [string, Check][] = [
  ['emptyDir', emptyDirProblems],
  ['hostPath', hostPathProblems],
  [
    'gitRepo',
    (source, path) => [...requiredTexts(source, path, ['repository']), ...filePath(textAt(source, 'directory'), `${path}.directory`)],
  ],
  ['gcePersistentDisk', (source, path) => requiredTexts(source, path.replace(/gcePersistentDisk$/, 'persistentDisk'), ['pdName'])],
  ['awsElasticBlockStore', (source, path) => requiredTexts(source, path, ['volumeID'])],
  ['secret', secretProblems],
  ['nfs', nfsProblems],
  ['iscsi', () => []],
  ['glusterfs', () => []],
  ['flocker', () => []],
  ['persistentVolumeClaim', (source, path) => requiredTexts(source, path, ['claimName'])],
  ['rbd', () => []],
  ['cinder', () => []],
  ['cephfs', () => []],
  ['quobyte', () => []],
  ['downwardAPI', downwardProblems],
  ['fc', () => []],
  ['flexVolume', () => []],
  ['configMap', configMapProblems],
  ['azureFile', () => []],
  ['vsphereVolume', () => []],
  ['photonPersistentDisk', () => []],
  ['portworxVolume', () => []],
  ['azureDisk', () => []],
  ['storageos', () => []],
  ['projected', projectedProblems],
  ['scaleIO', () => []],
  ['csi', csiProblems],
  ['ephemeral', ephemeralProblems],
  ['image', (source, path) => [...requiredTexts(source, path, ['reference'])]],
]

function sourceProblems(volume: JsonObject, path: string): FieldProblem[] {
  const [first, ...others] = SOURCES.filter(([name]) => objectAt(volume, name) !== undefined)
  if (first === undefined) return [required(path, 'must specify a volume type')]
  const [name, check] = first
  return [
    ...check(objectAt(volume, name) ?? {}, `${path}.${name}`),
    ...others.map(([other]) => forbidden(`${path}.${other}`, 'may not specify more than 1 volume type')),
  ]
}

function requiredTexts(source: JsonObject, path: string, names: readonly string[]): FieldProblem[] {
  return names.filter((name) => textAt(source, name) === '').map((name) => required(`${path}.${name}`))
}

function emptyDirProblems(source: JsonObject, path: string): FieldProblem[] {
  const negative = source['sizeLimit'] !== undefined && quantityOf(source['sizeLimit']).nanos < 0n
  return negative ? [forbidden(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')] : []
}

const HOST_PATH_TYPES = ['', 'BlockDevice', 'CharDevice', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket']

function hostPathProblems(source: JsonObject, path: string): FieldProblem[] {
  const target = textAt(source, 'path')
  if (target === '') return [required(`${path}.path`)]
  return [...noStepsBack(target, `${path}.path`), ...oneOf(`${path}.type`, givenText(source, 'type'), HOST_PATH_TYPES)]
}

function nfsProblems(source: JsonObject, path: string): FieldProblem[] {
  const target = textAt(source, 'path')
  return [
    ...requiredTexts(source, path, ['server', 'path']),
    ...(target.startsWith('/') ? [] : [invalid(`${path}.path`, target, 'must be an absolute path')]),
  ]
}

function secretProblems(source: JsonObject, path: string): FieldProblem[] {
  return [
    ...requiredTexts(source, path, ['secretName']),
    ...modeProblems(source, `${path}.defaultMode`, 'defaultMode'),
    ...items(source, path),
  ]
}

function configMapProblems(source: JsonObject, path: string): FieldProblem[] {
  return [...requiredTexts(source, path, ['name']), ...modeProblems(source, `${path}.defaultMode`, 'defaultMode'), ...items(source, path)]
}

function modeProblems(source: JsonObject, field: string, name: string): FieldProblem[] {
  const mode = numberAt(source, name)
  const good = mode === undefined || (mode >= 0 && mode <= 0o777)
  return good ? [] : [invalid(field, mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
}

function items(source: JsonObject, path: string): FieldProblem[] {
  return objectsAt(source, 'items').flatMap((item, index) => itemProblems(item, `${path}.items[${index}]`))
}

function itemProblems(item: JsonObject, path: string): FieldProblem[] {
  return [
    ...requiredTexts(item, path, ['key', 'path']),
    ...filePath(textAt(item, 'path'), `${path}.path`),
    ...modeProblems(item, `${path}.mode`, 'mode'),
  ]
}

/** The server names the volume here, not the file. */
function downwardProblems(source: JsonObject, path: string): FieldProblem[] {
  return [
    ...modeProblems(source, `${path}.defaultMode`, 'defaultMode'),
    ...objectsAt(source, 'items').flatMap((file) => downwardFileProblems(file, path)),
  ]
}

function downwardFileProblems(file: JsonObject, path: string): FieldProblem[] {
  const problems = [...requiredTexts(file, path, ['path']), ...filePath(textAt(file, 'path'), `${path}.path`)]
  const field = objectAt(file, 'fieldRef')
  const resource = objectAt(file, 'resourceFieldRef')
  if (field !== undefined) {
    problems.push(...fieldRefProblems(field, `${path}.fieldRef`, VOLUME_FIELDS))
    if (resource !== undefined)
      problems.push(invalid(path, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'))
  } else if (resource !== undefined) problems.push(...resourceRefProblems(resource, `${path}.resourceFieldRef`, true))
  else problems.push(required(path, 'one of fieldRef and resourceFieldRef is required'))
  return [...problems, ...modeProblems(file, `${path}.mode`, 'mode')]
}

const MAX_EXPIRATION = 2 ** 32

function projectedProblems(source: JsonObject, path: string): FieldProblem[] {
  const problems = modeProblems(source, `${path}.defaultMode`, 'defaultMode')
  const paths = new Set<string>()
  const once = (target: string, shown: string) => {
    if (target === '') return
    if (paths.has(target)) problems.push(invalid(path, shown, 'conflicting duplicate paths'))
    paths.add(target)
  }
  objectsAt(source, 'sources').forEach((one, index) => {
    const place = `${path}.sources[${index}]`
    for (const name of ['secret', 'configMap']) {
      const named = objectAt(one, name)
      if (named === undefined) continue
      problems.push(...requiredTexts(named, `${place}.${name}`, ['name']), ...items(named, `${place}.${name}`))
      for (const item of objectsAt(named, 'items')) once(textAt(item, 'path'), textAt(named, 'name'))
    }
    for (const file of objectsAt(one, 'downwardAPI', 'items')) {
      problems.push(...downwardFileProblems(file, `${place}.downwardAPI`))
      once(textAt(file, 'path'), textAt(file, 'path'))
    }
    const token = objectAt(one, 'serviceAccountToken')
    if (token !== undefined) problems.push(...tokenProblems(token, path, `${place}.serviceAccountToken`))
    const kinds = ['secret', 'configMap', 'downwardAPI', 'serviceAccountToken'].filter((name) => objectAt(one, name) !== undefined)
    if (kinds.length > 1) problems.push(forbidden(place, 'may not specify more than 1 volume type per source'))
  })
  return problems
}

function tokenProblems(token: JsonObject, volume: string, path: string): FieldProblem[] {
  const seconds = numberAt(token, 'expirationSeconds') ?? 0
  const target = textAt(token, 'path')
  const problems: FieldProblem[] = []
  if (seconds < 600) problems.push(invalid(`${path}.expirationSeconds`, seconds, 'may not specify a duration less than 10 minutes'))
  if (seconds > MAX_EXPIRATION)
    problems.push(invalid(`${path}.expirationSeconds`, seconds, 'may not specify a duration larger than 2^32 seconds'))
  return [...problems, ...(target === '' ? [required(`${volume}.path`)] : filePath(target, `${volume}.path`))]
}

function csiProblems(source: JsonObject, path: string): FieldProblem[] {
  const driver = textAt(source, 'driver')
  const secret = objectAt(source, 'nodePublishSecretRef')
  const problems: FieldProblem[] = []
  if (driver === '') problems.push(required(`${path}.driver`))
  if (driver.length > 63) problems.push(tooLong(`${path}.driver`, 63))
  problems.push(...invalidAll(`${path}.driver`, driver, subdomainProblems(driver.toLowerCase())))
  if (secret !== undefined && textAt(secret, 'name') === '') problems.push(required(`${path}.nodePublishSecretRef.name`))
  return problems
}

function ephemeralProblems(source: JsonObject, path: string): FieldProblem[] {
  const template = objectAt(source, 'volumeClaimTemplate')
  if (template === undefined) return [required(`${path}.volumeClaimTemplate`)]
  return claimSpecProblems(objectAt(template, 'spec') ?? {}, `${path}.volumeClaimTemplate.spec`)
}
