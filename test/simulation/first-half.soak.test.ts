import { testHalf } from './many-seeds.ts';

testHalf(0);
