import { type Normalised, problemList } from '../../schema/normalize.ts'
import { type CanonicalCompositeTool, normaliseCompositeTool } from '../../shared/composite/composite-tool-normalise.ts'
import type { VirtualMCPCompositeToolDefinition } from './schema.ts'

export type CanonicalVirtualMCPCompositeToolDefinitionSpec = CanonicalCompositeTool

export function normaliseVirtualMcpCompositeToolDefinition(
  definition: Pick<VirtualMCPCompositeToolDefinition, 'spec'>,
): Normalised<CanonicalVirtualMCPCompositeToolDefinitionSpec> {
  const problems = problemList()
  const spec = normaliseCompositeTool(problems, 'spec', definition.spec)
  return { spec, problems: problems.all }
}
