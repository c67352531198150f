import { checkPolicies } from '../policy-syntax.ts'

/* For the test of the bundle: says on standard output what is wrong with its argument. */
process.stdout.write(JSON.stringify(checkPolicies([process.argv[2] ?? ''], '[]')))
