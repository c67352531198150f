import type { Subject } from './requirement.ts'

/** How a row is proven, strongest first. It follows from where the citing test ran. */
export const PROOFS = ['e2e', 'cluster', 'process', 'unit', 'admission', 'schema', 'docs'] as const
export type Proof = (typeof PROOFS)[number]

/** Files whose tests prove less than their stage suggests: they look at schemas, ask only for admission, or read pages. */
export const PROOF_OF_FILE: Readonly<Record<string, Proof>> = {
  'test/requirements/resource-schemas.test.ts': 'schema',
  'test/requirements/resource-admission.cluster.test.ts': 'admission',
  'test/seed-manifests.cluster.test.ts': 'admission',
  'test/deploy/examples.cluster.test.ts': 'admission',
  'test/docs.test.ts': 'docs',
  'test/registry/documentation.test.ts': 'docs',
}

const PROOF_OF_STAGE: Readonly<Record<string, Proof>> = {
  node: 'e2e',
  platform: 'e2e',
  cluster: 'cluster',
  conformance: 'process',
  services: 'process',
  clone: 'process',
}

/** The proof that a test in `file` (path below the repository) gives. */
export function proofOf(file: string): Proof {
  const stage = /\.(\w+)\.test\.ts$/.exec(file)?.[1] ?? ''
  return PROOF_OF_FILE[file] ?? PROOF_OF_STAGE[stage] ?? 'unit'
}

/** Proofs that suffice, one of them, for a row to be met. */
const SUFFICIENT: Readonly<Record<Subject, readonly Proof[]>> = {
  behavior: ['e2e', 'cluster', 'process', 'unit'],
  shape: ['e2e', 'cluster', 'process', 'unit', 'admission', 'schema'],
  docs: PROOFS,
}

export function suffices(subject: Subject, proofs: Iterable<Proof>): boolean {
  return [...proofs].some((proof) => SUFFICIENT[subject].includes(proof))
}

export function sorted(proofs: Iterable<Proof>): Proof[] {
  const given = new Set(proofs)
  return PROOFS.filter((proof) => given.has(proof))
}
