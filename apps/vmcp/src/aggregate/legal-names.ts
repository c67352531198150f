import { createHash } from 'node:crypto'

const MAX_LENGTH = 64
const HEAD_LENGTH = 55

/** The names of clients' lists: `^[A-Za-z0-9_-]{1,64}$`, the form that all model providers accept. */
export function isLegalName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(name)
}

/** The legal form of a name. It depends on the name alone unless that form is taken. */
export function legalName(name: string, isTaken: (name: string) => boolean): string {
  if (isLegalName(name)) return name
  const replaced = name.replace(/[^A-Za-z0-9_-]/gu, '_')
  if (replaced.length > MAX_LENGTH || isTaken(replaced)) return hashedName(name, replaced)
  return replaced
}

function hashedName(name: string, replaced: string): string {
  const hash = createHash('sha256').update(name, 'utf8').digest('hex').slice(0, 8)
  return `${replaced.slice(0, HEAD_LENGTH)}_${hash}`
}
