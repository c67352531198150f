import { randomBytes } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import type { ServerSecrets } from '../keys/server-secrets.ts'

/** Refresh tokens name their family, signed: one that was consumed long ago is recognized without a record of it. */
export interface RefreshIds {
  make(family: string): string
  /** Undefined: not made here, or expired. */
  familyOf(id: string): string | undefined
}

const PURPOSE = 'refresh tokens'
const FORM = /^[\w-]{43}\.([0-9a-z]{1,9})\.([\w-]{1,64})\.([\w-]{43})$/

export function createRefreshIds(secrets: ServerSecrets, clock: Clock, lifeSeconds: number): RefreshIds {
  const now = () => Math.floor(clock.now() / 1_000)
  return {
    make(family) {
      const text = `${randomBytes(32).toString('base64url')}.${now().toString(36)}.${family}`
      return `${text}.${secrets.sign(PURPOSE, text)}`
    },
    familyOf(id) {
      const [, issued = '', family, signature = ''] = FORM.exec(id) ?? []
      if (family === undefined || Number.parseInt(issued, 36) + lifeSeconds <= now()) return undefined
      return secrets.verifies(PURPOSE, id.slice(0, id.lastIndexOf('.')), signature) ? family : undefined
    },
  }
}
