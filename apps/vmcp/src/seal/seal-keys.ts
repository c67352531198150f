import { hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { ThvError } from '@thv/kernel/errors'
import { type SealKey, StateSeal } from '@thv/mcp/bridge/state-seal'
import type { Env } from '../discover/forwarded-headers.ts'

export type SealPurpose = 'parked calls' | 'relayed states' | 'workflows'

const CURRENT = 'VMCP_SESSION_HMAC_SECRET'
const PREVIOUS = 'VMCP_SESSION_HMAC_SECRET_PREVIOUS'
const MIN_BYTES = 16
const KEY_BYTES = 32
const ID_BYTES = 6

/**
 * The secrets that seals are made of, one key for each purpose (HKDF, RFC 5869). Replicas with one secret open the seals of each other;
 * without one, a seal lives as long as the process.
 */
export class SealKeys {
  /** Of this process: some states lead back to one replica only. */
  readonly replica = randomUUID()
  readonly #secrets: readonly [Buffer, ...Buffer[]]

  constructor(...secrets: readonly [Buffer, ...Buffer[]]) {
    this.#secrets = secrets
  }

  /** A secret that was replaced still opens what it sealed. Throws `vmcp_config_invalid`. */
  static fromEnv(env: Env): SealKeys {
    const current = secretOf(env, CURRENT)
    const previous = secretOf(env, PREVIOUS)
    if (current === undefined && previous !== undefined) throw invalid(`${PREVIOUS} is set without ${CURRENT}`)
    return current === undefined ? SealKeys.random() : new SealKeys(current, ...(previous === undefined ? [] : [previous]))
  }

  static random(): SealKeys {
    return new SealKeys(randomBytes(KEY_BYTES))
  }

  sealFor(purpose: SealPurpose): StateSeal {
    const [first, ...others] = this.#secrets
    return new StateSeal([keyOf(first, purpose), ...others.map((secret) => keyOf(secret, purpose))])
  }
}

function keyOf(secret: Buffer, purpose: SealPurpose): SealKey {
  const derived = Buffer.from(hkdfSync('sha256', secret, '', `toolhive vmcp seal: ${purpose}`, KEY_BYTES + ID_BYTES))
  return { key: derived.subarray(0, KEY_BYTES), id: derived.subarray(KEY_BYTES).toString('base64url') }
}

function secretOf(env: Env, variable: string): Buffer | undefined {
  const text = env[variable]
  if (text === undefined || text === '') return undefined
  const secret = Buffer.from(text)
  if (secret.length < MIN_BYTES) throw invalid(`${variable} has fewer than ${MIN_BYTES} bytes`)
  return secret
}

function invalid(message: string): ThvError {
  return new ThvError('vmcp_config_invalid', message)
}
