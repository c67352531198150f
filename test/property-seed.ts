import { isCi } from '@thv/testkit/run/run-environment'
import fc from 'fast-check'

/*
 * On the machines of people properties look at other examples in each run, so that in time all get their turn. A run of CI judges one
 * change and must not fail for something that was there before, so there the examples are always the same ones.
 */
const seed = isCi() ? 20_261_116 : undefined
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
