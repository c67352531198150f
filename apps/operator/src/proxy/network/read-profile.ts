import { isRecord } from '@thv/resources/schema/normalize'
import type { PermissionProfile } from './permission-profile.ts'

export type ReadProfile =
  | { readonly ok: true; readonly profile: PermissionProfile }
  | { readonly ok: false; readonly problems: readonly string[] }

type Value = Readonly<Record<string, unknown>>

/**
 * Reads a profile out of its JSON. A field that is not known is an error, since it may be a misspelt restriction. What is absent allows
 * nothing.
 */
export function readProfile(text: string, fallbackName: string): ReadProfile {
  const document = parse(text)
  if (document === undefined) return { ok: false, problems: ['it is not a JSON object'] }
  const problems: string[] = []
  const read = reader(problems)
  const network = read.object(document, 'network', ['mode', 'outbound', 'inbound'])
  const outbound = read.object(network, 'network.outbound', ['insecure_allow_all', 'allow_host', 'allow_port'])
  const inbound = read.object(network, 'network.inbound', ['allow_host'])
  const mode = modeOf(network['mode'], problems)
  if (read.flag(document, 'privileged')) {
    problems.push('privileged is not granted by a profile: set securityContext.privileged in spec.podTemplateSpec if you mean it')
  }
  for (const field of unknownFields(document, ['name', 'read', 'write', 'network', 'privileged'])) problems.push(`${field} is not known`)
  const profile: PermissionProfile = {
    name: typeof document['name'] === 'string' && document['name'] !== '' ? document['name'] : fallbackName,
    read: read.texts(document, 'read'),
    write: read.texts(document, 'write'),
    network: {
      ...(mode !== undefined && { mode }),
      outbound: {
        insecure_allow_all: read.flag(outbound, 'network.outbound.insecure_allow_all'),
        allow_host: read.texts(outbound, 'network.outbound.allow_host'),
        allow_port: read.ports(outbound, 'network.outbound.allow_port'),
      },
      inbound: { allow_host: read.texts(inbound, 'network.inbound.allow_host') },
    },
  }
  if (document['name'] !== undefined && typeof document['name'] !== 'string') problems.push('name expects a text')
  return problems.length > 0 ? { ok: false, problems } : { ok: true, profile }
}

function parse(text: string): Value | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function modeOf(mode: unknown, problems: string[]): 'bridge' | 'none' | undefined {
  if (mode === undefined || mode === null || mode === '') return undefined
  if (mode === 'bridge' || mode === 'none') return mode
  problems.push(mode === 'host' ? 'network.mode host is not granted by a profile' : 'network.mode expects bridge or none')
  return undefined
}

function unknownFields(value: Value, known: readonly string[]): string[] {
  return Object.keys(value).filter((field) => !known.includes(field))
}

function reader(problems: string[]) {
  /** The member of that path, or undefined when it is absent; null is absent. */
  const member = (parent: Value, path: string): unknown => parent[path.slice(path.lastIndexOf('.') + 1)] ?? undefined
  const wrong = <T>(path: string, words: string, instead: T): T => {
    problems.push(`${path} expects ${words}`)
    return instead
  }
  const list = <T>(value: unknown, is: (item: unknown) => item is T): value is T[] => Array.isArray(value) && value.every(is)
  return {
    object(parent: Value, path: string, known: readonly string[]): Value {
      const value = member(parent, path)
      if (value === undefined) return {}
      if (!isRecord(value)) return wrong(path, 'an object', {})
      for (const field of unknownFields(value, known)) problems.push(`${path}.${field} is not known`)
      return value
    },
    flag(parent: Value, path: string): boolean {
      const value = member(parent, path)
      return value === undefined ? false : typeof value === 'boolean' ? value : wrong(path, 'true or false', false)
    },
    texts(parent: Value, path: string): string[] {
      const value = member(parent, path)
      if (value === undefined) return []
      const isText = (item: unknown): item is string => typeof item === 'string' && item.trim() !== ''
      return list(value, isText) ? [...new Set(value)] : wrong(path, 'a list of texts', [])
    },
    ports(parent: Value, path: string): number[] {
      const value = member(parent, path)
      if (value === undefined) return []
      const isPort = (item: unknown): item is number => Number.isInteger(item) && Number(item) >= 1 && Number(item) <= 65_535
      return list(value, isPort) ? [...new Set(value)] : wrong(path, 'a list of ports from 1 to 65535', [])
    },
  }
}
