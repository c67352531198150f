import { design000 } from './design-000.ts'
import { design001 } from './design-001.ts'
import { design002 } from './design-002.ts'
import { design003 } from './design-003.ts'
import { design004 } from './design-004.ts'
import type { DesignDocument, Requirement } from './requirement.ts'

export interface DocumentRequirements {
  document: DesignDocument
  title: string
  /** Fewer rows than this means that some were lost. */
  atLeast: number
  rows: readonly Requirement[]
}

/** Every requirement of the five design documents. */
export const REQUIREMENTS: readonly DocumentRequirements[] = [
  { document: '000', title: 'Operator registry integration through Gateway API', atLeast: 80, rows: design000 },
  { document: '001', title: 'Kubernetes source of the registry server', atLeast: 70, rows: design001 },
  { document: '002', title: 'Kubernetes operator architecture', atLeast: 150, rows: design002 },
  { document: '003', title: 'ConfigMap label selector of MCPRegistry', atLeast: 60, rows: design003 },
  { document: '004', title: 'MCPServerEntry for remote MCP servers', atLeast: 55, rows: design004 },
]
