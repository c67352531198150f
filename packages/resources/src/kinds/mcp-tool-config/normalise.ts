import { compact, type Normalised } from '../../schema/normalize.ts'
import type { MCPToolConfig } from './schema.ts'

type Spec = NonNullable<MCPToolConfig['spec']>

export interface CanonicalMCPToolConfigSpec {
  toolsFilter: string[]
  toolsOverride: NonNullable<Spec['toolsOverride']>
}

/** One spelling only; absent and empty mean the same, so both become empty. */
export function normaliseMcpToolConfig(config: Pick<MCPToolConfig, 'spec'>): Normalised<CanonicalMCPToolConfigSpec> {
  return { spec: compact({ toolsFilter: config.spec?.toolsFilter ?? [], toolsOverride: config.spec?.toolsOverride ?? {} }), problems: [] }
}
