import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'

/** Base64 by file name, as a Secret holds it. */
export type KeyData = Readonly<Record<string, string>>

/**
 * Slots of the Secret with the keys that the operator makes: the one in use, the next one, and older ones. The next one is there long before it
 * is used, so that replicas whose files are not fresh yet know it. All slots are filled from the start: the files that pods mount never change
 * their names, and a rotation replaces no pod.
 */
const SIGNING_SLOTS = 3
/** Client ids are good for a year, and are opened with the secret that sealed them. */
const HMAC_SLOTS = 7
const HMAC_BYTES = 32
const ROTATION_MS = 90 * 24 * 3_600_000

export const ROTATED_AT = 'toolhive.stacklok.dev/keys-rotated-at'

export const managedKeyFiles = slots(SIGNING_SLOTS, (index) => `key-${index}.pem`)
export const managedHmacFiles = slots(HMAC_SLOTS, (index) => `hmac-${index}`)

/** The kinds that have an authorization server. */
export type KeyOwnerKind = 'MCPExternalAuthConfig' | 'VirtualMCPServer'

/** By kind, so that two owners of one name have keys of their own. No name of one kind ends like those of the other. */
const SUFFIXES: Readonly<Record<KeyOwnerKind, string>> = { MCPExternalAuthConfig: 'authserver', VirtualMCPServer: 'authserver-vmcp' }

/** Name of the Secret with the keys that the operator makes. */
export function managedSecretName(kind: KeyOwnerKind, owner: string): string {
  return `${owner}-${SUFFIXES[kind]}`
}

/** The name that a Secret of this kind had before each kind had its own; undefined: no other one. */
export function earlierSecretName(kind: KeyOwnerKind, owner: string): string | undefined {
  return kind === 'VirtualMCPServer' ? managedSecretName('MCPExternalAuthConfig', owner) : undefined
}

export function isManagedFile(file: string): boolean {
  return managedKeyFiles.includes(file) || managedHmacFiles.includes(file)
}

/** The operator makes what the spec names no Secret for. */
export function needsManagedKeys({ signingKeySecretRefs, hmacSecretRefs }: CanonicalEmbeddedAuthServer): boolean {
  return signingKeySecretRefs.length === 0 || hmacSecretRefs.length === 0
}

export function newKeyData(): KeyData {
  return {
    ...Object.fromEntries(managedKeyFiles.map((file) => [file, newSigningKey()])),
    ...Object.fromEntries(managedHmacFiles.map((file) => [file, newHmacSecret()])),
  }
}

/**
 * The next key is used from now on, there is a new next one, and the oldest one is gone. A slot that somebody emptied is filled, because pods
 * wait without end for a file that is missing; the others stay good.
 */
export function rotatedKeyData(data: KeyData): KeyData {
  return { ...shifted(data, managedKeyFiles, newSigningKey), ...shifted(data, managedHmacFiles, newHmacSecret) }
}

/** Milliseconds until the next rotation; 0: it is due. Without a readable time it is. */
export function untilRotation(rotatedAt: string | undefined, now: number): number {
  const at = Date.parse(rotatedAt ?? '')
  return Number.isNaN(at) ? 0 : Math.max(0, at + ROTATION_MS - now)
}

function shifted(data: KeyData, files: readonly string[], fresh: () => string): KeyData {
  const [current, next, ...old] = files.map((file) => data[file] || fresh())
  const moved = [next, fresh(), current, ...old]
  return Object.fromEntries(files.map((file, index) => [file, moved[index] ?? fresh()]))
}

function newSigningKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })).toString('base64')
}

function newHmacSecret(): string {
  // As text: some tools cut files at line ends.
  return Buffer.from(randomBytes(HMAC_BYTES).toString('hex')).toString('base64')
}

function slots(count: number, name: (index: number) => string): readonly string[] {
  return Array.from({ length: count }, (_, index) => name(index))
}
