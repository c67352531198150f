import { ThvError } from '@thv/kernel/errors'
import type { Problem } from '@thv/runconfig/field'
import type { VmcpProblem } from './composite-rules.ts'

const MAX_SHOWN = 20

/** Names every field with what is expected there; never a value. */
export function invalidVmcpConfig(file: string, problems: readonly VmcpProblem[]): ThvError {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  const shown = problems.slice(0, MAX_SHOWN).map(sentenceOf)
  if (problems.length > MAX_SHOWN) shown.push(`and ${problems.length - MAX_SHOWN} more`)
  return new ThvError('vmcp_config_invalid', `configuration ${file} has ${count}: ${shown.join('; ')}`, { details: { file, problems } })
}

function sentenceOf({ path, message, isSentence }: VmcpProblem): string {
  return isSentence ? message : `${path === '' ? 'the file' : path} ${message}`
}

/** The file asks for something that this version cannot apply, and does not leave out in silence. */
export function unsupportedVmcpConfig(file: string, parts: readonly Problem[]): ThvError {
  const list = parts.map(({ path, message }) => `${path} ${message}`).join('; ')
  const message = `configuration ${file} asks for what this version does not have: ${list}; remove the fields`
  return new ThvError('vmcp_config_unsupported', message, { details: { file, fields: parts.map(({ path }) => path) } })
}
