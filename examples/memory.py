from muniment import Memory

memory = Memory.open(user="joanna")  # embedded, in ./.muniment; Memory.open(url=..., key=...) for a server
memory.add("I'm vegan, and my sister Ana is getting married in June.")  # or a list of chat messages
print(*memory.search("what should I cook for her?"), sep="\n")
prompt = memory.context("what should I cook for her?", tokens=300)  # ready for a prompt, marked as data
