import { compact, type Normalised } from '../../schema/normalize.ts'
import type { MCPGroup } from './schema.ts'

export interface CanonicalMCPGroupSpec {
  description?: string
}

/** A group has one spelling only. */
export function normaliseMcpGroup(group: Pick<MCPGroup, 'spec'>): Normalised<CanonicalMCPGroupSpec> {
  return { spec: compact({ description: group.spec?.description }), problems: [] }
}
