import type { PodPlace } from '../network/pod-network.ts'
import { podField, resourceField } from '../values/downward.ts'
import { expand } from '../values/expansion.ts'
import type { ObjectSource } from '../values/object-source.ts'
import { ConfigError } from './config-error.ts'
import type { ContainerSpec, EnvFrom, EnvVar, KeyRef, NodePod } from './pod-spec.ts'

export interface EnvironmentInput {
  readonly pod: NodePod
  readonly container: ContainerSpec
  readonly place: PodPlace
  readonly objects: ObjectSource
  /** Variables of every pod, such as the address of the API server. A container's own variables win. */
  readonly podEnv: Readonly<Record<string, string>>
}

/** The variables that a container's spec asks for, over `podEnv`. Throws ConfigError. */
export async function containerEnvironment(input: EnvironmentInput): Promise<Record<string, string>> {
  const { container, podEnv } = input
  const env: Record<string, string> = { ...podEnv }
  for (const source of container.envFrom ?? []) Object.assign(env, await valuesFrom(source, input))
  for (const variable of container.env ?? []) {
    const value = variable.valueFrom ? await valueFrom(variable, input) : expand(variable.value ?? '', env)
    if (value !== undefined) env[variable.name] = value
  }
  for (const [name, value] of Object.entries(env)) {
    if (value.includes('\0')) throw new ConfigError(`the value of ${name} holds a zero byte`)
  }
  return env
}

async function valuesFrom(source: EnvFrom, { objects }: EnvironmentInput): Promise<Record<string, string>> {
  const { prefix = '', configMapRef, secretRef } = source
  const ref = configMapRef ?? secretRef
  const name = ref?.name ?? ''
  const data = configMapRef ? await objects.configMap(name) : await objects.secret(name)
  if (data === undefined) {
    if (ref?.optional) return {}
    throw missing(configMapRef ? 'configmap' : 'secret', name)
  }
  const entries = [...data].map(([key, value]): [string, string] => [`${prefix}${key}`, text(value)])
  return Object.fromEntries(entries.filter(([key]) => /^[^=\0]+$/.test(key)))
}

/** Undefined: the variable is not set. */
async function valueFrom({ name, valueFrom: from = {} }: EnvVar, input: EnvironmentInput): Promise<string | undefined> {
  const { pod, container, place, objects } = input
  const { configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef } = from
  if (configMapKeyRef) return keyValue(await objects.configMap(configMapKeyRef.name ?? ''), configMapKeyRef, { pod, kind: 'ConfigMap' })
  if (secretKeyRef) return keyValue(await objects.secret(secretKeyRef.name ?? ''), secretKeyRef, { pod, kind: 'Secret' })
  const value = fieldRef
    ? podField(pod, fieldRef.fieldPath, place)
    : resourceFieldRef && resourceField(pod, resourceFieldRef, container.name)
  if (value !== undefined) return value
  const what = fieldRef?.fieldPath ?? resourceFieldRef?.resource ?? Object.keys(from)[0] ?? 'nothing'
  throw new ConfigError(`environment variable ${name}: ${what} is not something this node can give`)
}

function keyValue(
  data: ReadonlyMap<string, Uint8Array> | undefined,
  { name = '', key, optional }: KeyRef,
  { pod, kind }: { pod: NodePod; kind: 'ConfigMap' | 'Secret' },
): string | undefined {
  const value = data?.get(key)
  if (value !== undefined) return text(value)
  if (optional) return undefined
  if (data === undefined) throw missing(kind.toLowerCase(), name)
  throw new ConfigError(`couldn't find key ${key} in ${kind} ${pod.metadata.namespace}/${name}`)
}

function missing(kind: string, name: string): ConfigError {
  return new ConfigError(`${kind} ${JSON.stringify(name)} not found`)
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
