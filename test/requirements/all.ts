import { design000 } from './design-000.ts'
import { design001 } from './design-001.ts'
import { design002 } from './design-002.ts'
import { design003 } from './design-003.ts'
import { design004 } from './design-004.ts'
import type { DesignDocument, Requirement } from './requirement.ts'

export interface DocumentRequirements {
  document: DesignDocument
  title: string
  /** Exact number of rows: a row that is lost or added by accident shows. */
  count: number
  rows: readonly Requirement[]
}

/** Every requirement of the five design documents. */
export const REQUIREMENTS: readonly DocumentRequirements[] = [
  { document: '000', title: 'Operator registry integration through Gateway API', count: 135, rows: design000 },
  { document: '001', title: 'Kubernetes source of the registry server', count: 122, rows: design001 },
  { document: '002', title: 'Kubernetes operator architecture', count: 297, rows: design002 },
  { document: '003', title: 'ConfigMap label selector of MCPRegistry', count: 107, rows: design003 },
  { document: '004', title: 'MCPServerEntry for remote MCP servers', count: 124, rows: design004 },
]

/** Documents that have lost or gained rows, or whose ids are no longer consecutive. Ids are never given to another sentence. */
export function misnumbered(documents: readonly DocumentRequirements[]): string[] {
  return documents.flatMap(({ document, rows, count }) => {
    if (rows.length !== count) return [`document ${document} has ${rows.length} rows instead of ${count} (test/requirements/all.ts)`]
    const wrong = rows.find((row, index) => row.id !== `${document}-${String(index + 1).padStart(3, '0')}`)
    return wrong ? [`document ${document}: ${wrong.id} is out of sequence`] : []
  })
}
